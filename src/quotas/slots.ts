/** Gives back what was taken; once, however often it is called. */
export type Release = () => void;

type SlotWait = {
  /** Longest wait; without it there is no end to it. */
  withinMs?: number | undefined;
  /** Who waits has gone. */
  signal?: AbortSignal | undefined;
  /** What is thrown where no slot became free in time. */
  refuse: () => Error;
};

export type Slots = {
  take(accountId: number, wait: SlotWait): Promise<Release>;
};

/** What is taken now, by the account and by all of them. */
export type Taken = { accountId: number; ofAccount: number; ofAll: number };

type Waiting = { grant: () => void };

/** Slots that accounts take in turns, and each account's work in its order. */
export function createSlots(hasRoom: (taken: Taken) => boolean): Slots {
  const taken = new Map<number, number>();
  /** First the account whose turn it is; whoever had it goes to the end. */
  const lines = new Map<number, Set<Waiting>>();
  let all = 0;

  const mayTake = (accountId: number) =>
    hasRoom({ accountId, ofAccount: taken.get(accountId) ?? 0, ofAll: all });

  function takeOne(accountId: number): Release {
    taken.set(accountId, (taken.get(accountId) ?? 0) + 1);
    all += 1;
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      const left = (taken.get(accountId) ?? 0) - 1;
      if (left > 0) taken.set(accountId, left);
      else taken.delete(accountId);
      all -= 1;
      grant();
    };
  }

  function grant(): void {
    for (const [accountId, line] of lines) {
      const [first] = line;
      if (!first || !mayTake(accountId)) continue;
      leave(accountId, first);
      if (lines.delete(accountId)) lines.set(accountId, line);
      first.grant();
    }
  }

  function leave(accountId: number, one: Waiting): void {
    const line = lines.get(accountId);
    line?.delete(one);
    if (line?.size === 0) lines.delete(accountId);
  }

  return {
    take(accountId, { withinMs, signal, refuse }) {
      // Its end was told before anybody could listen for it: the slot would never be given back.
      if (signal?.aborted) return Promise.reject(refuse());
      if (!lines.has(accountId) && mayTake(accountId)) return Promise.resolve(takeOne(accountId));
      const { promise, resolve, reject } = Promise.withResolvers<Release>();
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', giveUp);
      };
      const one: Waiting = {
        grant: () => {
          end();
          resolve(takeOne(accountId));
        },
      };
      const giveUp = () => {
        end();
        leave(accountId, one);
        reject(refuse());
      };
      const timer = withinMs === undefined ? undefined : setTimeout(giveUp, withinMs);
      const line = lines.get(accountId) ?? new Set();
      lines.set(accountId, line.add(one));
      signal?.addEventListener('abort', giveUp, { once: true });
      return promise;
    },
  };
}
