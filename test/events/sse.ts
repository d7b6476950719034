/** One server-sent event; a heartbeat has no data. */
export type Message = { id: string; event: string; data: Record<string, unknown> | null };

export type Reading = {
  messages: Message[];
  /** Resolves once there are `count` messages with data. Rejects if the stream ends before. */
  until(count: number): Promise<Record<string, unknown>[]>;
  /** Resolves when the stream has ended, in whatever way. */
  ended: Promise<void>;
  /** The id from which a reader would resume. */
  lastId(): string;
  close(): void;
};

/** Reads server-sent events as a browser does. Resolves with the first message, which contains the position. */
export async function readEvents(
  url: string,
  token: number | string | null,
  lastEventId?: string,
): Promise<Reading> {
  const abort = new AbortController();
  const response = await fetch(url, {
    headers: {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    },
    signal: abort.signal,
  });
  const { body } = response;
  if (!response.ok || !body) throw new Error(`${response.status}`);
  const messages: Message[] = [];
  let changed = Promise.withResolvers<void>();
  const withData = () => messages.flatMap(({ data }) => (data ? [data] : []));
  let over = false;
  const ended = (async () => {
    let rest = '';
    for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
      const blocks = (rest + chunk).split('\n\n');
      rest = blocks.pop() ?? '';
      messages.push(...blocks.map(parse));
      changed.resolve();
      changed = Promise.withResolvers();
    }
  })()
    .catch(() => undefined)
    .finally(() => {
      over = true;
      changed.resolve();
    });
  while (messages.length === 0 && !over) await changed.promise;
  return {
    messages,
    ended,
    lastId: () => messages.at(-1)?.id ?? '',
    close: () => abort.abort(),
    async until(count) {
      while (withData().length < count) {
        if (over) throw new Error(`The stream ended after ${withData().length} events.`);
        await changed.promise;
      }
      return withData();
    },
  };
}

function parse(block: string): Message {
  const lines = block.split('\n');
  const field = (name: string) => lines.find((line) => line.startsWith(name))?.slice(name.length);
  const data = field('data: ');
  return {
    id: field('id: ') ?? '',
    event: field('event: ') ?? '',
    data: data === undefined ? null : (JSON.parse(data) as Record<string, unknown>),
  };
}
