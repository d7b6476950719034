import type { NewEvent } from '../../contract/event.ts';

/** Sense events, and changes of state, that are planned and not committed. */
export type UnderWay = { events: number; moves: number };

const nothing: UnderWay = { events: 0, moves: 0 };

/** What transactions under way will record, by account: it counts before it is committed. */
export type EventsUnderWay = {
  of(accountId: number): UnderWay;
  /** Gives what was taken, to be given back once it is committed, or will not be. */
  take(events: NewEvent[]): ReadonlyMap<number, UnderWay>;
  giveBack(taken: ReadonlyMap<number, UnderWay>): void;
};

export function createUnderWay(): EventsUnderWay {
  const sums = new Map<number, UnderWay>();
  return {
    of: (accountId) => sums.get(accountId) ?? nothing,
    take(events) {
      const taken = sumUp(events);
      for (const [accountId, its] of taken) change(sums, accountId, its, 1);
      return taken;
    },
    giveBack(taken) {
      for (const [accountId, its] of taken) change(sums, accountId, its, -1);
    },
  };
}

function sumUp(events: NewEvent[]): Map<number, UnderWay> {
  const taken = new Map<number, UnderWay>();
  for (const { accountId, event } of events) {
    const its = taken.get(accountId) ?? { ...nothing };
    its[event.type === 'sense' ? 'events' : 'moves'] += 1;
    taken.set(accountId, its);
  }
  return taken;
}

function change(
  sums: Map<number, UnderWay>,
  accountId: number,
  { events, moves }: UnderWay,
  sign: 1 | -1,
): void {
  const before = sums.get(accountId) ?? nothing;
  const after = { events: before.events + sign * events, moves: before.moves + sign * moves };
  if (after.events === 0 && after.moves === 0) sums.delete(accountId);
  else sums.set(accountId, after);
}
