import { setTimeout as delay } from 'node:timers/promises';
import type { WitnessDevice } from '../register.ts';

type Polled = { messages: { topic: string; payload: { pId?: string } }[]; after: string };

/** A device that polls for its messages over HTTP, and tries again if it gets no answer. */
export type PollingDevice = WitnessDevice & {
  /** Waits for a profile, and returns its pId. What it received is not acknowledged yet. */
  takeProfile(): Promise<string>;
  /** Acknowledges what it received. Resolves when that was answered. */
  acknowledge(): Promise<void>;
  sayCurrent(pId: string): Promise<void>;
};

const waitSeconds = 5;
const giveUpMs = 8_000;
const retryMs = 200;

/** Repeats while the answer is null. Throws `Unexpected`, and when the signal aborts. */
export async function insist<T>(
  signal: AbortSignal,
  once: (signal: AbortSignal) => Promise<T | null>,
): Promise<T> {
  for (;;) {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(giveUpMs)]);
    const result = await once(limit).catch((error: unknown) => {
      if (error instanceof Unexpected) throw error;
      return null;
    });
    signal.throwIfAborted();
    if (result !== null) return result;
    await delay(retryMs, undefined, { signal });
  }
}

/** An answer that no fault explains. */
class Unexpected extends Error {}

/** The answer's body; null if the service could not answer for now. Throws `Unexpected` for any other refusal. */
export async function readAnswer<T>(response: Response): Promise<T | null> {
  const text = await response.text();
  if (response.ok) return JSON.parse(text) as T;
  if (response.status === 503 || response.status === 429) return null;
  throw new Unexpected(`${response.url}: ${response.status} ${text}`);
}

export function createPollingDevice(
  device: WitnessDevice,
  baseUrl: string,
  signal: AbortSignal,
): PollingDevice {
  const path = `${baseUrl}/devices/${device.uuid}`;
  const headers = { authorization: `Bearer ${device.token}`, 'content-type': 'application/json' };
  let after = '';

  const poll = (seconds: number) =>
    insist(signal, async (limit) => {
      const query = `wait=${seconds}&after=${after}`;
      return readAnswer<Polled>(await fetch(`${path}/down?${query}`, { headers, signal: limit }));
    });

  return {
    ...device,
    async takeProfile() {
      for (;;) {
        const given = await poll(waitSeconds);
        ({ after } = given);
        const found = given.messages.findLast(({ topic }) => topic === 'profile')?.payload.pId;
        if (found !== undefined) return found;
      }
    },
    async acknowledge() {
      ({ after } = await poll(0));
    },
    async sayCurrent(pId) {
      const body = JSON.stringify({ pId, state: 'current' });
      const request = { method: 'POST', headers, body };
      await insist(signal, async (limit) =>
        readAnswer(await fetch(`${path}/up/profile`, { ...request, signal: limit })),
      );
    },
  };
}
