import type { Bus } from '../bus/bus.ts';
import type { MonotonicClock } from '../lib/clock-readings.ts';

/** The accounts whose values some process streams. */
type Listeners = {
  readonly accounts: ReadonlySet<number>;
  close(): void;
};

type ListenersOptions = {
  bus: Bus;
  monotonicClock: MonotonicClock;
  /** A process that has not announced its accounts for this long counts as gone. */
  expiryMs?: number;
};

type Said = { accountIds: number[]; untilMs: number };

/** For a process that stores values: collects what the processes with streams announce (`createAnnouncer`). */
export function startListeners(options: ListenersOptions): Listeners {
  const { bus, monotonicClock, expiryMs = 10_000 } = options;
  const byProcess = new Map<string, Said>();
  const accounts = new Set<number>();

  function collect(): void {
    const monotonicMs = monotonicClock();
    for (const [process, { untilMs }] of byProcess)
      if (untilMs <= monotonicMs) byProcess.delete(process);
    accounts.clear();
    for (const { accountIds } of byProcess.values()) for (const id of accountIds) accounts.add(id);
  }
  const ends = [
    bus.subscribe('listeners', ({ process, accountIds }) => {
      byProcess.set(process, { accountIds, untilMs: monotonicClock() + expiryMs });
      if (accountIds.length === 0) byProcess.delete(process);
      collect();
    }),
  ];
  const timer = setInterval(collect, expiryMs / 4);
  timer.unref();
  bus.publish('listeners-asked', {});
  return {
    accounts,
    close() {
      clearInterval(timer);
      for (const end of ends) end();
    },
  };
}

/** Announces the accounts whose values this process streams. */
type Announcer = {
  add(accountId: number): void;
  delete(accountId: number): void;
};

type AnnouncerOptions = {
  bus: Bus;
  /** The name of this process; no other has it. */
  process: string;
  /** A third of the time after which `Listeners` counts a process as gone. */
  everyMs?: number;
};

/** Announces at each change, every few seconds and on request; nothing while there are no streams. */
export function createAnnouncer({ bus, process, everyMs = 3_000 }: AnnouncerOptions): Announcer {
  const accounts = new Set<number>();
  let timer: NodeJS.Timeout | undefined;
  let ends: (() => void)[] = [];
  const announce = (): void => bus.publish('listeners', { process, accountIds: [...accounts] });

  return {
    add(accountId) {
      accounts.add(accountId);
      if (timer === undefined) {
        timer = setInterval(announce, everyMs);
        ends = [bus.subscribe('listeners-asked', announce), bus.subscribe('resync', announce)];
      }
      announce();
    },
    delete(accountId) {
      accounts.delete(accountId);
      announce();
      if (accounts.size > 0) return;
      clearInterval(timer);
      timer = undefined;
      for (const end of ends) end();
    },
  };
}
