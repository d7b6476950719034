import { kindOf, stateOf } from '../db/error-kind.ts';
import type { NewEvent } from '../core/event.ts';
import { DomainError } from '../errors.ts';
import type { Logger } from '../log.ts';
import { findBlamed, setApart } from './blame.ts';
import { Crowded, rejectCrowded } from './crowded.ts';
import type { Work } from './lane.ts';
import type { Plan } from './plan.ts';
import type { Repeats } from './repeats.ts';
import { split, toRejection } from './split.ts';
import { storeOnce } from './store-once.ts';
import type { Ahead, StoreDeps, Stored, Turn } from './store-once.ts';
import { failWithdrawn, isWithdrawn } from './withdrawn.ts';
import { StaleContext } from './write.ts';

export type SettleDeps = StoreDeps & {
  log: Logger;
  repeats: Repeats;
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
 * for goes back to its lanes, or without a turn is stored by the next one.
 */
export async function settleBatch(batch: Work[], deps: SettleDeps, turn?: Turn): Promise<void> {
  let rest: Work[] = [];
  const keep = (left: Work[]) => {
    rest = [...left, ...rest];
  };
  await settlePlanned(batch, deps, turn?.putBack ?? keep, turn);
  if (rest.length > 0) await settleBatch(rest, deps);
}

/** All of it but what `putBack` is given. */
async function settlePlanned(
  batch: Work[],
  deps: SettleDeps,
  putBack: Turn['putBack'],
  turn?: Turn,
): Promise<void> {
  let work = batch;
  const onCut = ({ planned, left, cut }: Plan) => {
    for (const entry of cut) entry.open += 1;
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
      stored = await storeOnce(work, areNew, deps, attempt === 1 ? turn : undefined, onCut);
    } catch (error) {
      await turn?.ahead?.settled;
      if (error instanceof StaleContext || error instanceof Crowded) {
        // What was planned on top of a commit that failed was not read at all.
        if (attempt === 1 && !(await isCommitted(turn?.ahead))) forget(work);
        const { ofBlamed, ofOthers } = await blame(error, work, deps);
        if (ofBlamed.length > 0 && ofOthers.length > 0) {
          await settleBatch(ofOthers, deps);
          turn?.onPartSettled?.(ofOthers);
        }
        work = ofBlamed.length > 0 ? ofBlamed : ofOthers;
        if (error instanceof Crowded) work = rejectCrowded(work, error.rows);
        continue;
      }
      // Whether the transaction committed may be unknown: what is remembered must be read again.
      forget(work);
      if (areNew && kindOf(error) === 'unique') {
        deps.repeats.met();
        continue;
      }
      if (isTransient(error)) {
        deps.log.warn({ err: error, attempt, devices: work.length }, 'a batch waits to be stored');
        await deps.pause(attempt);
        continue;
      }
      const parts = split(work);
      if (parts) {
        for (const part of parts) {
          await settleBatch(part, deps);
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
  for (const { lane } of work) lane.context = null;
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
  error: Crowded | StaleContext,
  work: Work[],
  { db }: SettleDeps,
): Promise<ReturnType<typeof setApart>> {
  const blamed = await findBlamed(error, work, db).catch(() => new Set<number>());
  // Nobody can be named: they are read again, all of them.
  if (blamed.size === 0) forget(work);
  return setApart(work, blamed);
}

function tell({ plan, recorded }: Stored, { onCommitted }: SettleDeps): void {
  for (const [entry, kept] of plan.rows.kept) entry.kept = kept;
  for (const { entry } of plan.settled) entry.settle();
  for (const { entry } of plan.orphaned) {
    entry.fail(new DomainError('device-gone', 'The device was removed.'));
  }
  onCommitted(plan, recorded);
}

/** A message whose connection is closed will come again: what no transaction holds is dropped. */
function withoutWithdrawn(batch: Work[]): Work[] {
  if (!batch.some(({ units }) => units.some(isWithdrawn))) return batch;
  return batch.flatMap(({ lane, units }) => {
    failWithdrawn(units.filter(isWithdrawn));
    const left = units.filter((unit) => !isWithdrawn(unit));
    return left.length > 0 ? [{ lane, units: left }] : [];
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
function isolate([work]: Work[], error: unknown, log: Logger): Work[] {
  const unit = work?.units[0];
  if (!work || !unit) return [];
  log.error({ err: error, device: work.lane.device.uuid }, 'an item could not be stored');
  if (unit.content.kind === 'none') {
    unit.entry.fail(error);
    return [];
  }
  return [{ lane: work.lane, units: [toRejection(unit, stateOf(error) || 'internal')] }];
}
