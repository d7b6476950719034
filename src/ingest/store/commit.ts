import { kindOf, stateOf } from '../../db/error-kind.ts';
import type { NewEvent } from '../../contract/event.ts';
import { DomainError } from '../../errors.ts';
import type { Log } from '../../log/logger.ts';
import { findBlamed, setApart } from './blame.ts';
import { MillisecondFull, rejectBeyondMillisecond } from './millisecond-full.ts';
import type { Work } from '../queue/device-queue.ts';
import type { Plan } from './plan-batch.ts';
import type { Redeliveries } from './redelivery.ts';
import { split, toRejection } from './split.ts';
import { attemptCommit } from './attempt.ts';
import type { StoreDeps, Stored } from './attempt.ts';
import type { Ahead, Turn } from '../queue/turn.ts';
import { failWithdrawn, isWithdrawn } from '../queue/withdrawn.ts';
import { StaleContext } from './write.ts';

export type CommitDeps = StoreDeps & {
  log: Log;
  repeats: Redeliveries;
  /** What follows a commit and is no row. */
  onCommitted: (plan: Plan, recorded: NewEvent[]) => void;
  /** Resolves after a pause before the next try, or rejects when the service gives up (it stops). */
  pause: (attempt: number) => Promise<void>;
};

/**
 * Stores a batch, whatever it takes: made again when a device changed meanwhile, its account's part apart
 * from the others'; kept while the database is away; split, by account first, while one item is to blame. Every unit is settled when this resolves, or
 * its message was withdrawn. In the first attempt it is behind the batch ahead; it tries again only when
 * that one is settled, so that each device's messages keep their order. What one transaction has no room
 * for goes back to its queues, or without a turn is stored by the next one.
 */
export async function commitBatch(batch: Work[], deps: CommitDeps, turn?: Turn): Promise<void> {
  let rest: Work[] = [];
  const keep = (left: Work[]) => {
    rest = [...left, ...rest];
  };
  await settlePlanned(batch, deps, turn?.putBack ?? keep, turn);
  if (rest.length > 0) await commitBatch(rest, deps);
}

/** All of it but what `putBack` is given. */
async function settlePlanned(
  batch: Work[],
  deps: CommitDeps,
  putBack: Turn['putBack'],
  turn?: Turn,
): Promise<void> {
  let work = batch;
  const onCut = ({ planned, left, cut }: Plan) => {
    for (const message of cut) message.open += 1;
    work = planned;
    putBack(left, cut.length);
  };
  for (let attempt = 1; ; attempt++) {
    work = withoutWithdrawn(work);
    if (work.length === 0) return;
    // Of this attempt: others may meet a repeat meanwhile.
    const areNew = !deps.repeats.areExpected();
    let stored: Stored;
    try {
      stored = await attemptCommit(work, areNew, deps, attempt === 1 ? turn : undefined, onCut);
    } catch (error) {
      await turn?.ahead?.settled;
      if (error instanceof StaleContext || error instanceof MillisecondFull) {
        // What was planned on top of a commit that failed was not read at all.
        if (attempt === 1 && !(await isCommitted(turn?.ahead))) forget(work);
        const { ofBlamed, ofOthers } = await blame(error, work, deps);
        if (ofBlamed.length > 0 && ofOthers.length > 0) {
          await commitBatch(ofOthers, deps);
          turn?.onPartSettled?.(ofOthers);
        }
        work = ofBlamed.length > 0 ? ofBlamed : ofOthers;
        if (error instanceof MillisecondFull) work = rejectBeyondMillisecond(work, error.rows);
        continue;
      }
      // Whether the transaction committed may be unknown: what is remembered must be read again.
      forget(work);
      if (areNew && kindOf(error) === 'unique') {
        deps.repeats.met();
        continue;
      }
      if (isTransient(error)) {
        deps.log.warn(
          { event: 'batch.retried', err: error, attempt, devices: work.length },
          'A batch could not be stored and is tried again.',
        );
        await deps.pause(attempt);
        continue;
      }
      const parts = split(work);
      if (parts) {
        for (const part of parts) {
          await commitBatch(part, deps);
          turn?.onPartSettled?.(part);
        }
        return;
      }
      work = isolate(work, error, deps.log);
      continue;
    }
    // Whatever comes of telling it, it is stored.
    tell(stored, deps);
    return;
  }
}

function forget(work: Work[]): void {
  for (const { queue } of work) queue.context = null;
}

/** Whether what was planned on top of this stands on what is stored. */
async function isCommitted(ahead: Ahead | null | undefined): Promise<boolean> {
  if (!ahead) return true;
  return ahead.committing.committed.then(
    () => true,
    () => false,
  );
}

/** The accounts that are to blame, and the others. */
async function blame(
  error: MillisecondFull | StaleContext,
  work: Work[],
  { db }: CommitDeps,
): Promise<ReturnType<typeof setApart>> {
  const blamed = await findBlamed(error, work, db).catch(() => new Set<number>());
  // Nobody can be named: they are read again, all of them.
  if (blamed.size === 0) forget(work);
  return setApart(work, blamed);
}

function tell({ plan, recorded }: Stored, { onCommitted }: CommitDeps): void {
  for (const [message, kept] of plan.rows.kept) message.kept = kept;
  for (const { message } of plan.settled) message.settle();
  for (const { message } of plan.orphaned) {
    message.fail(new DomainError('device-gone', 'The device was removed.'));
  }
  onCommitted(plan, recorded);
}

/** A message whose connection is closed will come again: what no transaction holds is dropped. */
function withoutWithdrawn(batch: Work[]): Work[] {
  if (!batch.some(({ units }) => units.some(isWithdrawn))) return batch;
  return batch.flatMap(({ queue, units }) => {
    failWithdrawn(units.filter(isWithdrawn));
    const left = units.filter((unit) => !isWithdrawn(unit));
    return left.length > 0 ? [{ queue, units: left }] : [];
  });
}

/**
 * No item is to blame, and the same again is right: the database is away for now, it settles a quarrel
 * with another transaction, or it is not the one that this program knows (the tables of another version,
 * rights that were withdrawn).
 */
function isTransient(error: unknown): boolean {
  return ['unavailable', 'serialization', 'schema'].includes(kindOf(error));
}

/** The one item that the database will not take becomes a rejection, with the reason in the log. */
function isolate([work]: Work[], error: unknown, log: Log): Work[] {
  const unit = work?.units[0];
  if (!work || !unit) return [];
  log.error(
    { event: 'item.refused', err: error, device: work.queue.device.uuid },
    'The database refused an item, which became a rejection of its device.',
  );
  if (unit.content.kind === 'none') {
    unit.message.fail(error);
    return [];
  }
  return [{ queue: work.queue, units: [toRejection(unit, stateOf(error) || 'internal')] }];
}
