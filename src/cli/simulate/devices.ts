import { setTimeout as delay } from 'node:timers/promises';
import { NewToken, PollAnswer, type RegistrationAnswer } from './answers.ts';
import { createBehaviour, type DeviceOptions, type SimulatedDevice } from './device.ts';
import { createTransport, type Reply } from './exchange.ts';

/** One request that sends is under way, and one that waits for messages. */
const connections = 2;
const pollSeconds = 25;
const retryMs = 500;
const topics = 'profile,configuration,state,display,errors,token';

/** Sends over HTTP, one message after the other, and waits for its messages with long polls. Throws when not let in. */
export async function connectHttpDevice(options: DeviceOptions): Promise<SimulatedDevice> {
  const { registration, insecure, tally } = options;
  const uuid = registration.deviceAuthUuid;
  const transport = createTransport({ insecure, maxConnections: connections });
  const headers = {
    Authorization: `Bearer ${registration.deviceAuthToken}`,
    'Content-Type': 'application/json',
  };
  const over = new AbortController();
  const { signal } = over;

  const request = (method: 'GET' | 'POST', path: string, body?: string): Promise<Reply> =>
    transport.send({
      method,
      url: new URL(`${addressOf(registration)}/devices/${uuid}/${path}`),
      headers,
      signal,
      ...(body === undefined ? {} : { body }),
    });

  /** Until it is answered with 200: what comes twice is stored once. */
  async function insist(...args: Parameters<typeof request>): Promise<Reply> {
    for (;;) {
      const reply = await request(...args).catch(() => null);
      signal.throwIfAborted();
      if (reply?.status === 200) return reply;
      tally.reconnects += 1;
      const waitMs = Number(reply?.headers['retry-after'] ?? 0) * 1_000;
      await delay(Math.max(retryMs, waitMs), undefined, { signal });
    }
  }

  let last: Promise<unknown> = Promise.resolve();
  const send = async (topic: string, payload: string): Promise<void> => {
    // In their order: the next one goes when this one is stored.
    const sent = last.then(() => insist('POST', `up/${topic}`, payload));
    last = sent.catch(() => undefined);
    await sent;
  };
  const { hear, ...behaviour } = createBehaviour(options, send);

  async function poll(): Promise<void> {
    for (let after = ''; ;) {
      const { text } = await insist(
        'GET',
        `down?wait=${pollSeconds}&topics=${topics}&after=${after}`,
      );
      const answer = PollAnswer.parse(JSON.parse(text));
      ({ after } = answer);
      for (const { topic, payload } of answer.messages)
        if (topic === 'token')
          headers.Authorization = `Bearer ${NewToken.parse(payload).deviceAuthToken}`;
        else hear(topic, payload);
    }
  }

  const close = async (): Promise<void> => {
    over.abort();
    transport.close();
  };
  const first = await request('POST', 'up/time', '{}').catch(async (error: unknown) => {
    await close();
    throw error;
  });
  if (first.status !== 200) {
    await close();
    throw new Error(`answered ${first.status} ${first.text}`);
  }
  const polling = poll().catch((error: unknown) => {
    if (!signal.aborted) tally.firstRefusal ??= String(error);
  });
  return { uuid, ...behaviour, disconnect: () => close().then(() => polling) };
}

function addressOf({ protocol, host, port }: RegistrationAnswer): string {
  return `${protocol}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
