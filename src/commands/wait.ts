import type { Bus } from '../bus/bus.ts';
import { openStates } from '../contract/command.ts';
import type { MonotonicClock } from '../lib/clock-readings.ts';
import { WakeableRest } from '../lib/wait.ts';
import type { CommandRow } from './schema.ts';

/**
 * How many requests of an account, and of all, may wait in this process. Further ones are answered at once: a request
 * holds its memory while it waits. Once half of all wait, an account may have a few only.
 */
const mostOfAccount = 100;
const fewOfAccount = 10;
const mostOfAll = 500;
/** A notice may be missed: the bus delivers at most once. */
const lookAgainMs = 5_000;

type Waiting = {
  accountId: number;
  commandId: string;
  waitMs: number;
  signal: AbortSignal;
};

/** Waits for the ends of commands, without a connection to the database meanwhile. */
export type CommandWaits = {
  /**
   * What `read` returns once that has ended, or else after `waitMs`. `read` is called once at least, and again after
   * each change of the command.
   */
  untilEnded(waiting: Waiting, read: () => Promise<CommandRow>): Promise<CommandRow>;
  close(): void;
};

export function createCommandWaits(deps: {
  bus: Pick<Bus, 'subscribe'>;
  monotonicClock: MonotonicClock;
}): CommandWaits {
  const { bus, monotonicClock } = deps;
  const waits = new Map<string, Set<WakeableRest>>();
  const counts = new Map<number, number>();
  let count = 0;
  const wake = (rests: Iterable<WakeableRest>) => {
    for (const rest of rests) rest.wake();
  };
  const ends = [
    bus.subscribe('command', ({ commandId }) => wake(waits.get(commandId) ?? [])),
    bus.subscribe('resync', () => [...waits.values()].forEach(wake)),
  ];

  function enter({ accountId, commandId }: Waiting): WakeableRest {
    const rest = new WakeableRest();
    count += 1;
    counts.set(accountId, (counts.get(accountId) ?? 0) + 1);
    waits.set(commandId, (waits.get(commandId) ?? new Set()).add(rest));
    return rest;
  }

  function leave({ accountId, commandId }: Waiting, rest: WakeableRest): void {
    count -= 1;
    const left = (counts.get(accountId) ?? 0) - 1;
    if (left > 0) counts.set(accountId, left);
    else counts.delete(accountId);
    const others = waits.get(commandId);
    others?.delete(rest);
    if (others?.size === 0) waits.delete(commandId);
  }

  return {
    async untilEnded(waiting, read) {
      const { accountId, waitMs, signal } = waiting;
      const most = count < mostOfAll / 2 ? mostOfAccount : fewOfAccount;
      const isFull = count >= mostOfAll || (counts.get(accountId) ?? 0) >= most;
      if (waitMs === 0 || isFull) return read();
      const endMs = monotonicClock() + waitMs;
      const rest = enter(waiting);
      const stop = () => rest.wake();
      signal.addEventListener('abort', stop);
      try {
        for (;;) {
          rest.begin();
          const command = await read();
          const leftMs = endMs - monotonicClock();
          const isOpen = (openStates as readonly string[]).includes(command.state);
          if (!isOpen || leftMs <= 0 || signal.aborted) return command;
          await rest.rest(Math.min(leftMs, lookAgainMs));
        }
      } finally {
        signal.removeEventListener('abort', stop);
        leave(waiting, rest);
      }
    },
    close() {
      for (const end of ends) end();
    },
  };
}
