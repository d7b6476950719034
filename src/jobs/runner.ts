import type { Database } from '../db/database.ts';
import { type DatabaseErrorKind, kindOf } from '../db/errors.ts';
import { jobsLock } from '../db/locks.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { pause } from '../lib/wait.ts';
import { WakeableRest } from '../lib/wakeable-rest.ts';
import { lockUsage } from '../quotas/quotas.ts';
import type { JobFailure } from './schema.ts';
import { findNext, lockPiece, putOffJob, saveProgress, type JobPiece } from './turn-queries.ts';

/** What was done with some devices. `after`: what follows the commit. */
export type PieceDone = { failed: JobFailure[]; after?: () => Promise<void> | void };

/** Does what a job says with some of its devices, within the transaction. */
export type DoPiece = (tx: Sql, piece: JobPiece) => Promise<PieceDone>;

export type RunnerDeps = {
  db: Database;
  doPiece: DoPiece;
  /** Milliseconds that only go forward. */
  nowMs: () => number;
  onError: (error: unknown) => void;
  /** How often it looks for what another process has begun, or left. */
  pollMs?: number;
};

export type JobRunner = {
  /** There is something to do. */
  wake(): void;
  close(): Promise<void>;
};

/** Devices of one transaction. */
const devicesAtOnce = 20;
/** Of one device: after so many failures in a row the job goes on without it. */
const maxFailures = 3;

/** How many devices are tried at once, and how often in a row it failed where that is one; `reason`: why. */
type Trial = { limit: number; failures: number; reason: string };
const firstTrial: Trial = { limit: devicesAtOnce, failures: 0, reason: '' };

/** Half of them next: which one is to blame, or how many are not too much, is found out so. */
function afterFailure({ limit, failures }: Trial, kind: DatabaseErrorKind): Trial {
  const reason = kind === 'cancelled' ? 'took-too-long' : 'internal-error';
  if (limit === 1) return { limit, failures: failures + 1, reason };
  return { limit: Math.floor(limit / 2), failures: 0, reason };
}
/** It rests as long as a piece took, so that others get at the database; and no longer than this. */
const longestRestMs = 250;

/**
 * Does some devices of each job in turn, of all accounts; in one process at a time. The same transaction stores
 * how far the job is: each device is done once, and another process goes on where one was killed.
 */
export function startJobRunner(deps: RunnerDeps): JobRunner {
  const { db, doPiece, nowMs, onError, pollMs = 1_000 } = deps;
  const stopping = new AbortController();
  /** Of jobs that failed: how they are tried next. */
  const trials = new Map<number, Trial>();
  const rest = new WakeableRest();

  /** False where there is nothing to do. */
  async function doSome(): Promise<boolean> {
    const next = await findNext(db);
    if (!next) return false;
    const trial = trials.get(next.id) ?? firstTrial;
    const { limit, failures, reason } = trial;
    const work: DoPiece = async (tx, piece) =>
      failures < maxFailures ? doPiece(tx, piece) : { failed: piece.uuids.map(failedBy(reason)) };
    try {
      const done = await doIn(next, limit, work);
      if (limit * 2 >= devicesAtOnce) trials.delete(next.id);
      else trials.set(next.id, { ...firstTrial, limit: limit * 2 });
      if (done === 'others') return false;
      await done?.after?.();
    } catch (error) {
      // The account was removed: its jobs rest until they are deleted.
      if (error instanceof DomainError && error.code === 'unauthenticated') return true;
      const kind = kindOf(error);
      // Whatever it was, others have their turn first.
      const putOff = putOffJob(db, next.id);
      if (kind === 'unavailable') {
        await putOff.catch(() => undefined);
        throw error;
      }
      await putOff;
      trials.set(next.id, afterFailure(trial, kind));
      onError(error);
    }
    return true;
  }

  function doIn(
    { id, accountId }: { id: number; accountId: number },
    limit: number,
    work: DoPiece,
  ): Promise<PieceDone | 'others' | null> {
    return db.transaction(async (tx) => {
      if (!(await isAlone(tx))) return 'others';
      // Before the job's row: whoever deletes the account goes the same way.
      await lockUsage(tx, accountId);
      const piece = await lockPiece(tx, id, limit);
      if (!piece) return null;
      const done = await work(tx, piece);
      await saveProgress(tx, id, { count: piece.uuids.length, failed: done.failed });
      return done;
    });
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      rest.begin();
      const startedMs = nowMs();
      const isBusy = await doSome().catch((error: unknown) => {
        onError(error);
        return false;
      });
      if (isBusy) await pause(Math.min(longestRestMs, nowMs() - startedMs), stopping.signal);
      else await rest.rest(pollMs);
    }
  }

  const running = run();
  return {
    wake: () => rest.wake(),
    async close() {
      stopping.abort();
      rest.wake();
      await running;
    },
  };
}

/** One process at a time: jobs are to take no more of the database where there are more processes. */
async function isAlone(tx: Sql): Promise<boolean> {
  const { rows } = await tx.query<{ held: boolean }>(
    'select pg_try_advisory_xact_lock($1) as held',
    [jobsLock],
  );
  return rows[0]?.held === true;
}

const failedBy =
  (reason: string) =>
  (deviceAuthUuid: string): JobFailure => ({ deviceAuthUuid, reason });
