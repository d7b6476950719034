import { kindOf, stateOf } from '../db/errors.ts';
import { DomainError } from '../errors.ts';
import type { Work } from './queue/device-queue.ts';
import { findBlamed, forgetContexts, setApart } from './store/blame.ts';
import { giveUp } from './store/give-up.ts';
import { MillisecondFull, rejectBeyondMillisecond } from './store/millisecond-full.ts';
import { mayFollow, noteRedelivery, pauseBeforeNext } from './store/retry.ts';
import { split, toRejection } from './store/split.ts';
import type { StoreDeps, Storing } from './store/storing.ts';
import { StaleContext } from './store/write.ts';

/** What is tried after a transaction that failed: `parts` first, each by itself, then `next` again. */
export type Recovery = { parts: Work[][]; next: Work[] };

/**
 * What is to be tried next of messages that a transaction could not store; what is in neither has failed. A
 * device that changed meanwhile is read again, its account's part apart from the others'. While the database
 * is away all are kept, within the bounds of `retry`. While one item is to blame they are split, by account
 * first, until that item is alone. Resolves when it may be tried.
 */
export async function recover(
  works: Work[],
  error: unknown,
  areNew: boolean,
  storing: Storing,
): Promise<Recovery> {
  const { attempts, deps } = storing;
  const isVoid = error instanceof StaleContext || error instanceof MillisecondFull;
  const isRedelivery = areNew && kindOf(error) === 'unique';
  const isAgainRight = isVoid || isRedelivery || isTransient(error);
  if (isTransient(error)) {
    deps.failing.lastMs = deps.nowMs();
    // What the database said is behind the words that others are told.
    deps.failing.state = stateOf(error instanceof DomainError ? error.cause : error);
  }
  if (isAgainRight && !mayFollow(attempts, deps)) return givenUp(works, error, storing);
  if (isVoid) return storeOthersFirst(works, error, deps);
  // Whether the transaction committed may be unknown: what is remembered must be read again.
  forgetContexts(works);
  if (isRedelivery) {
    noteRedelivery(deps.redeliveries, deps.nowMs());
    return again(works);
  }
  if (isAgainRight) return waitAndRetry(works, error, storing);
  const parts = split(works);
  return parts ? { parts, next: [] } : again(isolate(works, error, deps));
}

const again = (works: Work[]): Recovery => ({ parts: [], next: works });

function givenUp(works: Work[], error: unknown, storing: Storing): Recovery {
  giveUp(works, error, storing);
  return again([]);
}

async function waitAndRetry(works: Work[], error: unknown, storing: Storing): Promise<Recovery> {
  const { attempts, deps } = storing;
  deps.log.warn(
    { event: 'batch.retried', err: error, attempt: attempts.failures, devices: works.length },
    'A batch could not be stored and is tried again.',
  );
  await pauseBeforeNext(attempts, deps);
  return deps.stopping.aborted ? givenUp(works, error, storing) : again(works);
}

/** What is not of the accounts that are to blame is stored first, so that it does not wait for what is. */
async function storeOthersFirst(
  works: Work[],
  error: MillisecondFull | StaleContext,
  { db }: StoreDeps,
): Promise<Recovery> {
  const blamed = await findBlamed(error, works, db).catch(() => new Set<number>());
  // Nobody can be named: they are read again, all of them.
  if (blamed.size === 0) forgetContexts(works);
  const { ofBlamed, ofOthers } = setApart(works, blamed);
  const areBoth = ofBlamed.length > 0 && ofOthers.length > 0;
  const next = ofBlamed.length > 0 ? ofBlamed : ofOthers;
  return {
    parts: areBoth ? [ofOthers] : [],
    next: error instanceof MillisecondFull ? rejectBeyondMillisecond(next, error.rows) : next,
  };
}

/**
 * No item is to blame, and the same again is right: the database is away for now or was too slow, it chose another
 * transaction in a conflict, or its tables are not those that this program knows (another version's, rights withdrawn).
 */
function isTransient(error: unknown): boolean {
  return ['unavailable', 'cancelled', 'serialization', 'schema'].includes(kindOf(error));
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
