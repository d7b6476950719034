import { setImmediate } from 'node:timers/promises';
import type { NewEvent } from '../core/event.ts';
import type { Database } from '../db/database.ts';
import type { Committing, Transaction } from '../db/transaction.ts';
import type { Lane, Work } from './lane.ts';
import type { LeaveOut, LeftOut } from './leave-out.ts';
import type { ContextLoader } from './load-contexts.ts';
import { leaveUnread, planBatch } from './plan.ts';
import type { Plan } from './plan.ts';
import type { ApplyLimits } from './scope.ts';
import type { Remembered } from './remembered.ts';
import { StaleContext, write } from './write.ts';
import type { Writers } from './write.ts';

export type StoreDeps = {
  db: Database;
  writers: Writers;
  loadContexts: ContextLoader;
  /** Told of the devices that it has read or used. */
  remembered: Remembered;
  limits: ApplyLimits;
  /** What one transaction may cost: `planBatch`. */
  maxBatchItems: number;
  /** Told what accounts are still to be charged for a plan. */
  charge: (batch: Work[], charges: ReadonlyMap<number, number>) => void;
  /** Absent: all events are recorded, and nothing is counted. */
  leaveOut?: LeaveOut | undefined;
};

/** A batch whose commit is under way, and whose lanes have gone on. */
export type Ahead = { committing: Committing; settled: Promise<void> };

export type Turn = {
  /** The batch that this one is planned on top of, as if it were committed. */
  ahead: Ahead | null;
  /** Told when nothing is left to do but the commit, and the lanes know what follows it. */
  onCommitting: (committing: Committing) => void;
  /** Takes what the transaction that is being committed had no room for; so many units are rests of messages. */
  putBack: (left: Work[], rests: number) => void;
  /** Told when a part of the batch is settled while others of its accounts are still to be. */
  onPartSettled?: (part: Work[]) => void;
};

const nobody: ReadonlySet<Lane> = new Set();

/** What a transaction wrote, and which of its events are new. */
export type Stored = { plan: Plan; recorded: NewEvent[] };

/**
 * Tries to store a batch in one transaction, or as much of it as one may cost: `onCut` is told, before the
 * lanes go on, of a plan that leaves something. Throws what the database says, `StaleContext` or
 * `Crowded`; whether it is stored may be unknown then, and what the lanes know too.
 */
export async function storeOnce(
  work: Work[],
  areNew: boolean,
  deps: StoreDeps,
  turn: Turn | undefined,
  onCut: (plan: Plan) => void,
): Promise<Stored> {
  let plan: Plan | undefined;
  let leftOut: LeftOut = { events: [], told: [], recorded: new Map() };
  let isGivenUp = false;
  let isCommitting = false;
  const onCommitting = (committing: Committing) => {
    // A database that did not answer for long goes on with what was tried again meanwhile.
    if (isGivenUp) return;
    isCommitting = true;
    deps.leaveOut?.committing(leftOut);
    for (const { lane, context } of plan?.after ?? []) lane.context = context;
    for (const { lane } of plan?.planned ?? []) deps.remembered.note(lane);
    if (plan && plan.left.length > 0) onCut(plan);
    turn?.onCommitting(committing);
  };
  const unknown = new Set<Lane>();
  const store = async (tx: Transaction): Promise<Stored> => {
    for (const { lane } of work) if (lane.context === null) unknown.add(lane);
    let left: ReadonlySet<Lane> = nobody;
    if (unknown.size > 0) {
      const loaded = await deps.loadContexts(tx, [...unknown]);
      // Forgotten while others were read: that is no sign of a removal.
      const isForgotten = ({ lane }: Work) => lane.context === null && !unknown.has(lane);
      if (isGivenUp || work.some(isForgotten)) throw new StaleContext();
      ({ left } = loaded);
      for (const lane of unknown) {
        lane.context = loaded.contexts.get(lane.device.deviceId) ?? null;
        deps.remembered.note(lane);
      }
    }
    const isRead = ({ lane }: Work) => !left.has(lane);
    const read = left.size > 0 ? work.filter(isRead) : work;
    const planned = (plan = planBatch(read, deps.limits, deps.maxBatchItems));
    if (left.size > 0)
      leaveUnread(
        planned,
        work.filter((one) => !isRead(one)),
      );
    deps.charge(work, planned.charges);
    if (deps.leaveOut) leftOut = deps.leaveOut.apply(planned, planned.planned);
    // To write down what took half of that to plan is a piece of its own.
    if (planned.cost > deps.maxBatchItems / 2) {
      await setImmediate();
      if (isGivenUp) throw new StaleContext();
    }
    return { plan: planned, recorded: await write(tx, planned, areNew, deps.writers) };
  };
  const behind = turn?.ahead?.committing;
  try {
    const stored = await deps.db.transaction(store, { behind, onCommitting });
    deps.leaveOut?.committed(stored.plan.planned, stored.recorded, leftOut);
    return stored;
  } catch (error) {
    if (isCommitting) deps.leaveOut?.undo(leftOut);
    if (error instanceof StaleContext)
      for (const { lane } of work)
        if (lane.context === null && !unknown.has(lane)) error.forgotten.add(lane.device.deviceId);
    // They were read as claimed, and with the rollback they are not.
    for (const lane of unknown) lane.context = null;
    throw error;
  } finally {
    isGivenUp = true;
  }
}
