import type { Bus } from '../bus/bus.ts';

/** Says to whose values streams of this process listen. */
export type Announcer = {
  add(accountId: number): void;
  delete(accountId: number): void;
};

export type AnnouncerOptions = {
  bus: Bus;
  /** The name of this process; no other has it. */
  process: string;
  /** A third of what `Listeners` takes for gone. */
  everyMs?: number;
};

/** Says so at each change, every few seconds, and to whoever asks; nothing while nobody listens. */
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
