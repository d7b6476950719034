import { kindOf, stateOf } from '../../db/error-kind.ts';
import type { Committing } from '../../db/transaction.ts';
import { DomainError } from '../../errors.ts';
import type { Batch } from '../queue/batch.ts';
import { dropWithdrawn, isWithdrawn, type DeviceQueue, type Work } from '../queue/device-queue.ts';
import { findBlamed, setApart } from './blame.ts';
import { commitBatch, type CommitDeps } from './commit.ts';
import { MillisecondFull, rejectBeyondMillisecond } from './millisecond-full.ts';
import type { Plan } from './plan-batch.ts';
import { Attempts, type AttemptDeps, type Redeliveries, type RetryBounds } from './retry.ts';
import { split, toRejection } from './split.ts';
import { StaleContext } from './write.ts';

export type StoreDeps = CommitDeps &
  AttemptDeps & {
    repeats: Redeliveries;
    retry: RetryBounds;
    /** Told of each transaction whether it stored what it held; not of items that are wrong themselves. */
    onTried: (isStored: boolean) => void;
    /** The service stops: nothing is tried again. */
    stopping: AbortSignal;
  };

/** `batch`: null for a part of one, which has no queues to tell of. `givenUp`: devices, by batches. */
type Storing = {
  batch: Batch | null;
  givenUp: Set<DeviceQueue>;
  attempts: Attempts;
  deps: StoreDeps;
};

/**
 * Stores a batch by as many transactions as it takes (`commitBatch`): one, where nothing is wrong. When this
 * resolves every unit is stored, was given back to its queue, or its message has failed. Only the first
 * transaction is behind the batch ahead: the next ones wait for it, so that each device's messages keep their
 * order. Never rejects.
 */
export async function storeBatch(batch: Batch, deps: StoreDeps): Promise<void> {
  try {
    const { works, givenUp } = batch;
    await storeAll(works, { batch, givenUp, attempts: new Attempts(deps.retry, deps), deps });
  } catch (error) {
    deps.log.error(
      { event: 'batch.failed', err: error },
      'A batch could not be stored; its senders send it again.',
    );
    failAll(batch.works, error);
  }
}

/** A part of a batch, with what its transactions have no room for. */
async function storePart(part: Work[], storing: Storing): Promise<void> {
  let works = part;
  while (works.length > 0) works = await storeAll(works, { ...storing, batch: null });
}

/** Tries until all of it is stored or has failed; of a part gives what its transaction had no room for. */
async function storeAll(given: Work[], storing: Storing): Promise<Work[]> {
  const { batch, givenUp, attempts, deps } = storing;
  let works = given;
  let rest: Work[] = [];
  for (let isFirst = true; ; isFirst = false) {
    works = withoutWithdrawn(works);
    if (givenUp.size > 0) works = withoutGivenUp(works, storing);
    if (works.length === 0) return rest;
    // Of this attempt: others may meet a redelivery meanwhile.
    const areNew = !deps.repeats.areExpected();
    const onCommitSent = (plan: Plan, committing: Committing) => {
      if (plan.postponed.length > 0) {
        works = plan.works;
        for (const message of plan.divided) message.open += 1;
        if (batch) batch.putBack(plan.postponed, plan.divided.length);
        else rest = [...plan.postponed, ...rest];
      }
      if (isFirst) batch?.onCommitSent(committing);
    };
    const behind = isFirst ? batch?.behind?.committing : null;
    try {
      await commitBatch(works, { areNew, behind, onCommitSent }, deps);
      attempts.failures = 0;
      deps.onTried(true);
      return rest;
    } catch (error) {
      await batch?.behind?.done;
      for (const queue of batch?.behind?.givenUp ?? []) givenUp.add(queue);
      // What was planned on top of a commit that failed was not read at all.
      if (isFirst && !(await isCommitted(batch?.behind))) forget(works);
      works = await recover(works, error, areNew, storing);
    }
  }
}

/**
 * What is to be tried next of messages that a transaction could not store; the others have been seen to. A
 * device that changed meanwhile is read again, its account's part apart from the others'. While the database
 * is away all are kept, within the bounds of `retry`. While one item is to blame they are split, by account
 * first, until that item is alone.
 */
async function recover(
  works: Work[],
  error: unknown,
  areNew: boolean,
  storing: Storing,
): Promise<Work[]> {
  const { batch, attempts, deps } = storing;
  const isVoid = error instanceof StaleContext || error instanceof MillisecondFull;
  const isRedelivery = areNew && kindOf(error) === 'unique';
  const isAgainRight = isVoid || isRedelivery || isTransient(error);
  if (isTransient(error)) deps.onTried(false);
  if (isAgainRight && !attempts.mayFollow()) return giveUp(works, error, storing);
  if (isVoid) return storeOthers(works, error, storing);
  // Whether the transaction committed may be unknown: what is remembered must be read again.
  forget(works);
  if (isRedelivery) {
    deps.repeats.met();
    return works;
  }
  if (isAgainRight) {
    const { failures } = attempts;
    deps.log.warn(
      { event: 'batch.retried', err: error, attempt: failures, devices: works.length },
      'A batch could not be stored and is tried again.',
    );
    await attempts.pause(deps.stopping);
    return deps.stopping.aborted ? giveUp(works, error, storing) : works;
  }
  const parts = split(works);
  if (!parts) return isolate(works, error, deps);
  for (const part of parts) {
    await storePart(part, storing);
    // Halves of one device's messages are one queue.
    if (works.length > 1) batch?.partDone(part);
  }
  return [];
}

function forget(works: Work[]): void {
  for (const { queue } of works) queue.context = null;
}

/** Whether what was planned on top of this is based on what is stored. */
async function isCommitted(behind: Batch | null | undefined): Promise<boolean> {
  if (!behind?.committing) return true;
  return behind.committing.committed.then(
    () => true,
    () => false,
  );
}

/** Stores what is not of the accounts that are to blame; gives what is. */
async function storeOthers(
  works: Work[],
  error: MillisecondFull | StaleContext,
  storing: Storing,
): Promise<Work[]> {
  const blamed = await findBlamed(error, works, storing.deps.db).catch(() => new Set<number>());
  // Nobody can be named: they are read again, all of them.
  if (blamed.size === 0) forget(works);
  const { ofBlamed, ofOthers } = setApart(works, blamed);
  if (ofBlamed.length > 0 && ofOthers.length > 0) {
    await storePart(ofOthers, storing);
    storing.batch?.partDone(ofOthers);
  }
  const next = ofBlamed.length > 0 ? ofBlamed : ofOthers;
  return error instanceof MillisecondFull ? rejectBeyondMillisecond(next, error.rows) : next;
}

/** A message whose connection is closed will be sent again: what no transaction holds is dropped. */
function withoutWithdrawn(works: Work[]): Work[] {
  if (!works.some(({ units }) => units.some(isWithdrawn))) return works;
  return works.flatMap(({ queue, units }) => {
    const left = dropWithdrawn(units);
    return left.length > 0 ? [{ queue, units: left }] : [];
  });
}

/**
 * No item is to blame, and the same again is right: the database is away for now, it chose another transaction
 * in a conflict, or its tables are not those that this program knows (another version's, rights withdrawn).
 */
function isTransient(error: unknown): boolean {
  return ['unavailable', 'serialization', 'schema'].includes(kindOf(error));
}

/** The bounds are reached, or the service stops: nothing is acknowledged, and devices send it again. */
function giveUp(works: Work[], cause: unknown, { givenUp, deps }: Storing): Work[] {
  const { log, stopping, queues } = deps;
  forget(works);
  const message = stopping.aborted
    ? 'The service stops before this could be stored.'
    : 'This could not be stored for too long.';
  if (!stopping.aborted) {
    log.error(
      { event: 'batch.given-up', err: cause, devices: works.length },
      'A batch was tried too often; nothing of it is acknowledged, and its senders send it again.',
    );
  }
  const error = new DomainError('unavailable', message, { cause });
  for (const { queue } of works) givenUp.add(queue);
  failAll(works, error);
  queues.failBehind(works, error);
  return [];
}

/** What follows of devices of which something was given up fails too, so that all comes again in order. */
function withoutGivenUp(works: Work[], { givenUp, deps }: Storing): Work[] {
  const error = new DomainError('unavailable', 'A message before this one could not be stored.');
  const gone = works.filter(({ queue }) => givenUp.has(queue));
  failAll(gone, error);
  deps.queues.failBehind(gone, error);
  return works.filter(({ queue }) => !givenUp.has(queue));
}

function failAll(works: Work[], error: unknown): void {
  for (const { units } of works) for (const { message } of units) message.fail(error);
}

/** The one item that the database will not take becomes a rejection, with the reason in the log. */
function isolate([work]: Work[], error: unknown, { log }: StoreDeps): Work[] {
  const unit = work?.units[0];
  if (!work || !unit) return [];
  // Whoever brought the tick puts it off: it is no message of the device.
  if (unit.content.kind === 'none' || unit.content.kind === 'tick') {
    unit.message.fail(error);
    return [];
  }
  log.error(
    { event: 'item.refused', err: error, device: work.queue.device.uuid },
    'The database refused an item, which became a rejection of its device.',
  );
  return [{ queue: work.queue, units: [toRejection(unit, stateOf(error) || 'internal')] }];
}
