import { ErrorMessage, ReceivedProfile, type RegistrationAnswer } from './answers.ts';
import type { Ledger } from './compare.ts';
import { readingsAt } from './curve.ts';
import type { Tally } from './tally.ts';

/** A connected device. It accepts every profile it is handed and counts what it is told. */
export type SimulatedDevice = {
  readonly uuid: string;
  readonly ledger: Ledger;
  /** Resolves when the service acknowledged that the device accepted its first profile. */
  readonly accepted: Promise<void>;
  /** Messages that wait for their acknowledgement. */
  readonly waiting: () => number;
  /** Publishes the next reading of every sense in one message. */
  publish(): void;
  disconnect(): Promise<void>;
};

export type DeviceOptions = {
  index: number;
  registration: RegistrationAnswer;
  protocol: Protocol;
  insecure: boolean;
  tally: Tally;
  /** Aborts when nobody wants it any more, before it is connected. */
  signal: AbortSignal;
};

/** What a device speaks; `mqtt` is 3.1.1. */
export const protocols = ['mqtt', 'mqtt5', 'http'] as const;
export type Protocol = (typeof protocols)[number];

/** Sends a payload to a topic below `up/`; resolves when it was acknowledged, rejects when it will never be. */
export type Send = (topic: string, payload: string) => Promise<void>;

/** What a device does, whatever it speaks: `hear` is told what arrives below `down/`. */
export function createBehaviour({ index, tally }: DeviceOptions, send: Send) {
  const accepted = Promise.withResolvers<void>();
  function hear(topic: string, payload: unknown): void {
    if (topic === 'display') tally.events += 1;
    if (topic === 'errors') {
      tally.refused += 1;
      tally.firstRefusal ??= ErrorMessage.parse(payload).message;
    }
    if (topic === 'profile') {
      const { pId } = ReceivedProfile.parse(payload);
      const answer = JSON.stringify({ pId, state: 'current', engine: 'service' });
      send('profile', answer).then(accepted.resolve, () => undefined);
    }
  }
  return { hear, accepted: accepted.promise, ...createPublisher(send, index, tally) };
}

function createPublisher(send: Send, index: number, tally: Tally) {
  const ledger: Ledger = { sent: [], acknowledged: [] };
  let n = 0;
  let lastTs = 0;
  let waiting = 0;
  return {
    ledger,
    waiting: () => waiting,
    publish() {
      // Each reading has a moment of its own, so that none can pass for another one.
      const ts = (lastTs = Math.max(Date.now(), lastTs + 1));
      const readings = readingsAt(index, n).map((reading) => ({ ...reading, ts }));
      n += 1;
      waiting += 1;
      tally.published += 1;
      ledger.sent.push(...readings);
      const startedMs = performance.now();
      const acknowledged = (): void => {
        waiting -= 1;
        const tookUs = Math.round((performance.now() - startedMs) * 1_000);
        tally.acknowledged += 1;
        tally.acknowledgementUs.record(Math.max(1, tookUs));
        ledger.acknowledged.push(...readings);
      };
      send('measurements', JSON.stringify(readings)).then(acknowledged, () => void (waiting -= 1));
    },
  };
}
