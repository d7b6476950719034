import { setImmediate } from 'node:timers/promises';
import type { NewEvent } from '../../contract/event.ts';
import type { Database } from '../../db/database.ts';
import type { Committing, Transaction } from '../../db/transaction.ts';
import type { DeviceQueue, Work } from '../queue/device-queue.ts';
import type { Turn } from '../queue/turn.ts';
import { noneLeftOut } from './event-quota.ts';
import type { EventQuotaRule, LeftOut } from './event-quota.ts';
import type { ContextLoader } from './load-contexts.ts';
import { leaveUnread, planBatch } from './plan-batch.ts';
import type { Plan } from './plan-batch.ts';
import type { ApplyLimits } from '../rules/scope.ts';
import type { ContextCache } from './context-cache.ts';
import { StaleContext, write } from './write.ts';
import type { Writers } from './write.ts';

export type StoreDeps = {
  db: Database;
  writers: Writers;
  loadContexts: ContextLoader;
  /** Told of the devices that it has read or used. */
  remembered: ContextCache;
  limits: ApplyLimits;
  /** What one transaction may cost: `planBatch`. */
  maxBatchItems: number;
  /** Told what accounts are still to be charged for a plan. */
  charge: (batch: Work[], charges: ReadonlyMap<number, number>) => void;
  /** Absent: all events are recorded, and nothing is counted. */
  leaveOut?: EventQuotaRule | undefined;
};

const nobody: ReadonlySet<DeviceQueue> = new Set();

/** What a transaction wrote, and which of its events are new. */
export type Stored = { plan: Plan; recorded: NewEvent[] };

/**
 * Tries to store a batch in one transaction, or as much of it as one may cost: `onCut` is told, before the
 * queues go on, of a plan that leaves something. Throws what the database says, `StaleContext` or
 * `MillisecondFull`; whether it is stored may be unknown then, and what the queues know too.
 */
export async function attemptCommit(
  work: Work[],
  areNew: boolean,
  deps: StoreDeps,
  turn: Turn | undefined,
  onCut: (plan: Plan) => void,
): Promise<Stored> {
  let plan: Plan | undefined;
  let leftOut: LeftOut = noneLeftOut;
  let isGivenUp = false;
  let isCommitting = false;
  const onCommitting = (committing: Committing) => {
    // A database that did not answer for long goes on with what was tried again meanwhile.
    if (isGivenUp) return;
    isCommitting = true;
    deps.leaveOut?.committing(leftOut);
    for (const { queue, context } of plan?.after ?? []) queue.context = context;
    for (const { queue } of plan?.planned ?? []) deps.remembered.note(queue);
    if (plan && plan.left.length > 0) onCut(plan);
    turn?.onCommitting(committing);
  };
  const unknown = new Set<DeviceQueue>();
  const store = async (tx: Transaction): Promise<Stored> => {
    for (const { queue } of work) if (queue.context === null) unknown.add(queue);
    let left: ReadonlySet<DeviceQueue> = nobody;
    if (unknown.size > 0) {
      const loaded = await deps.loadContexts(tx, [...unknown]);
      // Forgotten while others were read: that is no sign of a removal.
      const isForgotten = ({ queue }: Work) => queue.context === null && !unknown.has(queue);
      if (isGivenUp || work.some(isForgotten)) throw new StaleContext();
      ({ left } = loaded);
      for (const queue of unknown) {
        queue.context = loaded.contexts.get(queue.device.deviceId) ?? null;
        deps.remembered.note(queue);
      }
    }
    const isRead = ({ queue }: Work) => !left.has(queue);
    const read = left.size > 0 ? work.filter(isRead) : work;
    const planned = (plan = planBatch(read, deps.limits, deps.maxBatchItems));
    if (left.size > 0)
      leaveUnread(
        planned,
        work.filter((one) => !isRead(one)),
      );
    deps.charge(work, planned.charges);
    if (deps.leaveOut && !isGivenUp) leftOut = deps.leaveOut.apply(planned, planned.planned);
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
    deps.leaveOut?.undo(leftOut, isCommitting);
    if (error instanceof StaleContext)
      for (const { queue } of work)
        if (queue.context === null && !unknown.has(queue))
          error.forgotten.add(queue.device.deviceId);
    // They were read as claimed, and with the rollback they are not.
    for (const queue of unknown) queue.context = null;
    throw error;
  } finally {
    isGivenUp = true;
  }
}
