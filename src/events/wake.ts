import type { Bus } from '../bus/bus.ts';
import type { StreamScope } from './feed.ts';

export type Alarm = {
  /** Resolves when something was committed for the scope since the last wait, or the signal aborts, or time is up. */
  wait(timeoutMs: number): Promise<void>;
  stop(): void;
};

/** Rings for events of the scope on any process, and when notices may have been missed. */
export function setAlarm(
  bus: Bus,
  { accountId, deviceId }: StreamScope,
  signal: AbortSignal,
): Alarm {
  let rung = false;
  let wake: (() => void) | undefined;
  const ring = () => {
    rung = true;
    wake?.();
  };
  signal.addEventListener('abort', ring, { once: true });
  const ends = [
    () => signal.removeEventListener('abort', ring),
    bus.subscribe('events', ({ accountIds, deviceIds }) => {
      if (deviceId === null ? accountIds.includes(accountId) : deviceIds.includes(deviceId)) ring();
    }),
    bus.subscribe('resync', ring),
  ];
  return {
    async wait(timeoutMs) {
      if (!rung && !signal.aborted) {
        const { promise, resolve } = Promise.withResolvers<void>();
        wake = resolve;
        const timer = setTimeout(resolve, timeoutMs);
        await promise;
        clearTimeout(timer);
        wake = undefined;
      }
      rung = false;
    },
    stop: () => ends.forEach((end) => end()),
  };
}
