import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import type { Keep } from '../http/once.ts';
import { quotaExceeded } from '../quotas/exceeded.ts';
import type { LimitsOf } from '../quotas/overrides.ts';
import { lockUsage } from '../quotas/quotas.ts';
import { countPlaces, forgetJobs, insertJob, type NewJob } from './jobs.ts';
import type { StartedJob } from './schema.ts';

/** Jobs of an account that have ended and are kept, and how long at most. */
const keptJobs = 100;
const keptMs = 30 * 86_400_000;
/** Which devices a job was about is kept so long after its end: for taking it back. */
const devicesKeptMs = 3_600_000;

/** What ended before is forgotten, ms. */
export const keptSince = (nowTs: number) => ({
  sinceTs: nowTs - keptMs,
  devicesSinceTs: nowTs - devicesKeptMs,
});

export type StartJobDeps = {
  db: Database;
  limitsOf: LimitsOf;
  /** The time by which jobs may be forgotten, ms; null: not now, the clock is in doubt. */
  believedTs: () => number | null;
  /** There is a new job to do. */
  onStarted: () => void;
};

/** A job before its devices are known: `select` finds them within the transaction. */
export type JobToStart = Omit<NewJob, 'devices'> & {
  select: (tx: Sql) => Promise<string[]>;
  /** For the answer, ms. */
  now: () => number;
};

export type StartJob = (job: JobToStart, keep: Keep<StartedJob> | null) => Promise<StartedJob>;

/** Stores a job within the quota `jobs`; throws `quota-exceeded`, or `too-many-requests` after large ones were stopped. */
export function createStartJob({ db, limitsOf, believedTs, onStarted }: StartJobDeps): StartJob {
  return async ({ select, now, ...job }, keep) => {
    const { accountId } = job;
    const limit = limitsOf(accountId).jobs;
    const started = await db.transaction(async (tx) => {
      await lockUsage(tx, accountId);
      const { running, resting, restMs } = await countPlaces(tx, accountId, job.ts);
      if (running >= limit) throw quotaExceeded({ quota: 'jobs', limit, used: running });
      if (running + resting >= limit) throw stoppedTooMuch(restMs);
      const devices = await select(tx);
      await forgetJobs(tx, { accountId, keep: keptJobs - 1, ...keptSince(believedTs() ?? 0) });
      const jobId = await insertJob(tx, { ...job, devices });
      const started = { jobId, timestamp: now() };
      await keep?.(tx, started);
      return started;
    });
    onStarted();
    return started;
  };
}

function stoppedTooMuch(restMs: number): DomainError {
  return new DomainError('too-many-requests', 'Jobs were stopped a moment ago: wait a little.', {
    retryAfterSeconds: Math.ceil(restMs / 1_000),
  });
}
