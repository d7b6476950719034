import { Readable } from 'node:stream';

/** The `text/event-stream` format of the HTML standard, section 9.2. */
export const eventStreamType = 'text/event-stream';

/** The approximate size of a chunk, which holds at least one event. A reader that stopped reading costs one. */
export const chunkBytes = 65_536;

/**
 * A part of a stream, for any number of readers. `position`: where a reader is after reading it. With `hasIds`
 * each message has its own id. Otherwise the last message still lacks its `id` and the blank line that ends it
 * (see `endWith`), because in a stream of several kinds an id names a position in each kind.
 */
export type StreamPiece<P> = { bytes: Buffer; position: P };

/** Writes a message without its id and its end. `event` and `data` contain no line break. */
export function writeMessage(event: string, data: string): string {
  return `event: ${event}\ndata: ${data}\n`;
}

/** Adds the id, and the end of the last message. */
export function endWith(bytes: Buffer, id: string): Buffer {
  return Buffer.concat([bytes, Buffer.from(`id: ${id}\n\n`)]);
}

/** A comment that keeps an idle connection open. */
export const stillHere = ': still here\n';

/**
 * Makes a stream that is read on demand: nothing is read ahead for a reader that does not read. It cuts off a
 * reader that leaves a chunk unread for longer than `patienceMs`; the reader can resume where it was.
 */
export function cutOffWhenSlow(source: AsyncIterable<Buffer>, patienceMs: number): Readable {
  const readable: Readable = Readable.from(
    (async function* () {
      for await (const chunk of source) {
        const timer = setTimeout(() => readable.destroy(new Error('slow reader')), patienceMs);
        try {
          yield chunk;
        } finally {
          clearTimeout(timer);
        }
      }
    })(),
    { highWaterMark: 1 },
  );
  return readable;
}

type Waiting<K> = { name: K; piece: StreamPiece<string>; taken: () => void };

/**
 * Yields the pieces of several sources as they come. Each source waits until its last piece is taken. Ends with
 * the first source that ends. The caller must end a source that is still waiting for something.
 */
export async function* merge<K>(
  sources: readonly (readonly [K, AsyncGenerator<StreamPiece<string>>])[],
): AsyncGenerator<[K, StreamPiece<string>]> {
  const waiting: Waiting<K>[] = [];
  let wake: (() => void) | undefined;
  let isOver = false;
  let failed: { error: unknown } | undefined;

  const pump = async (name: K, source: AsyncGenerator<StreamPiece<string>>): Promise<void> => {
    try {
      for await (const piece of source) {
        if (isOver) return;
        await new Promise<void>((taken) => {
          waiting.push({ name, piece, taken });
          wake?.();
        });
      }
    } catch (error) {
      failed ??= { error };
    } finally {
      isOver = true;
      wake?.();
    }
  };
  for (const [name, source] of sources) void pump(name, source);
  try {
    for (;;) {
      const next = waiting.shift();
      if (next) {
        yield [next.name, next.piece];
        next.taken();
        continue;
      }
      if (failed) throw failed.error;
      if (isOver) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      wake = resolve;
      await promise;
      wake = undefined;
    }
  } finally {
    isOver = true;
    for (const { taken } of waiting) taken();
  }
}
