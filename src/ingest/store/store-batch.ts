import type { Committing } from '../../db/transaction.ts';
import { DomainError } from '../../errors.ts';
import type { Batch } from '../queue/batch.ts';
import { dropWithdrawn, type Work } from '../queue/device-queue.ts';
import { forgetContexts } from './blame.ts';
import { commitBatch } from '../commit.ts';
import { failAll } from './give-up.ts';
import type { Plan } from './plan.ts';
import { recover } from '../retry.ts';
import type { StoreDeps, Storing } from './storing.ts';

/**
 * Stores a batch by as many transactions as it takes (`commitBatch`): one, where nothing is wrong. When this
 * resolves every unit is stored, was given back to its queue, or its message has failed. Only the first
 * transaction is behind the batch ahead: the next ones wait for it, so that each device's messages keep their
 * order. Never rejects.
 */
export async function storeBatch(batch: Batch, deps: StoreDeps): Promise<void> {
  try {
    const { works, givenUp } = batch;
    await storeAll(works, { batch, givenUp, attempts: { failures: 0, sinceMs: 0 }, deps });
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
    works = withoutGivenUp(withoutWithdrawn(works), storing);
    if (works.length === 0) return rest;
    // Of this attempt: others may meet a redelivery meanwhile.
    const areNew = deps.nowMs() >= deps.redeliveries.untilMs;
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
      deps.failing.lastMs = -Infinity;
      deps.progress.lastMs = deps.nowMs();
      return rest;
    } catch (error) {
      await batch?.behind?.done;
      for (const queue of batch?.behind?.givenUp ?? []) givenUp.add(queue);
      // What was planned on top of a commit that failed was not read at all.
      if (isFirst && !(await isCommitted(batch?.behind))) forgetContexts(works);
      const { parts, next } = await recover(works, error, areNew, storing);
      for (const part of parts) {
        await storePart(part, storing);
        // Halves of one device's messages are one queue.
        if (works.length > 1) batch?.partDone(part);
      }
      works = next;
    }
  }
}

/** Whether what was planned on top of this is based on what is stored. */
async function isCommitted(behind: Batch | null | undefined): Promise<boolean> {
  if (!behind?.committing) return true;
  return behind.committing.committed.then(
    () => true,
    () => false,
  );
}

/** A message whose connection is closed will be sent again: what no transaction holds is dropped. */
function withoutWithdrawn(works: Work[]): Work[] {
  const isAny = works.some(({ units }) =>
    units.some(({ message }) => message.delivery.isWithdrawn),
  );
  if (!isAny) return works;
  return works.flatMap(({ queue, units }) => {
    const left = dropWithdrawn(units);
    return left.length > 0 ? [{ queue, units: left }] : [];
  });
}

/** What follows of devices of which something was given up fails too, so that all comes again in order. */
function withoutGivenUp(works: Work[], { givenUp, deps }: Storing): Work[] {
  if (givenUp.size === 0) return works;
  const error = new DomainError('unavailable', 'A message before this one could not be stored.');
  const gone = works.filter(({ queue }) => givenUp.has(queue));
  failAll(gone, error);
  deps.queues.failBehind(gone, error);
  return works.filter(({ queue }) => !givenUp.has(queue));
}
