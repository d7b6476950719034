import { z } from 'zod';
import type { Actor } from '../audit/audit.ts';
import type { Database } from '../db/database.ts';
import { type DatabaseErrorKind, kindOf } from '../db/errors.ts';
import { jobsLock } from '../db/locks.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import type { Keep } from '../http/answer.ts';
import { exampleIds, timestamp, uuidParam } from '../http/schema.ts';
import { pause, WakeableRest } from '../lib/wait.ts';
import { type LimitsOf, lockUsage, quotaExceeded } from '../quotas/quotas.ts';
import type { Clock, MonotonicClock, WallMs } from '../lib/clock-readings.ts';

/** What was done with some devices. `after`: what follows the commit. */
export type PieceDone = { failed: JobFailure[]; after?: () => Promise<void> | void };

/** Does what a job says with some of its devices, within the transaction. */
export type DoPiece = (tx: Sql, piece: JobPiece) => Promise<PieceDone>;

type RunnerDeps = {
  db: Database;
  doPiece: DoPiece;
  /** Milliseconds that only go forward. */
  monotonicClock: MonotonicClock;
  onError: (error: unknown) => void;
  /** How often it looks for what another process has begun, or left. */
  pollMs?: number;
};

type JobRunner = {
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
  const { db, doPiece, monotonicClock, onError, pollMs = 1_000 } = deps;
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
      const startedMs = monotonicClock();
      const isBusy = await doSome().catch((error: unknown) => {
        onError(error);
        return false;
      });
      if (isBusy)
        await pause(Math.min(longestRestMs, monotonicClock() - startedMs), stopping.signal);
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

/** Failed devices of a job that are kept by name. */
const maxFailed = 1_000;

/** The job whose turn it is; those of disabled accounts rest. */
async function findNext(sql: Sql): Promise<{ id: number; accountId: number } | null> {
  const { rows } = await sql.query<{ id: number; accountId: number }>(
    `select j.id, j.account_id as "accountId"
       from job j
       join account a on a.id = j.account_id
      where j.state = 'running' and a.disabled_at is null
      order by j.served_at, j.id
      limit 1`,
  );
  return rows[0] ?? null;
}

/** What is next of a job. */
export type JobPiece = {
  id: number;
  accountId: number;
  action: JobAction;
  labels: string[] | null;
  actor: Actor;
  uuids: string[];
};

/**
 * The next `limit` devices of a job, which is kept from others; null where it has ended, or its account was
 * disabled, meanwhile.
 */
async function lockPiece(tx: Sql, id: number, limit: number): Promise<JobPiece | null> {
  const { rows } = await tx.query<JobPiece>(
    `select id, account_id as "accountId", action, labels, actor,
            devices[done + 1 : done + $2]::text[] as uuids
       from job
      where id = $1 and state = 'running'
        and exists (select from account where id = job.account_id and disabled_at is null)
        for no key update`,
    [id, limit],
  );
  return rows[0] ?? null;
}

/** So many more devices had their turn; where these were the last ones, the job is done. */
async function saveProgress(
  tx: Sql,
  id: number,
  { count, failed }: { count: number; failed: readonly JobFailure[] },
): Promise<void> {
  await tx.query(
    `update job j
        set done = j.done + $2,
            failed = case when $3::text = '[]' or json_array_length(j.failed) >= ${maxFailed}
                          then j.failed else (
              select coalesce(json_agg(f), '[]')
                from (select f from json_array_elements(j.failed) f
                      union all
                      select f from json_array_elements($3::json) f
                      limit ${maxFailed}) kept) end,
            failed_more = failed_more
              + greatest(0, json_array_length(j.failed) + $4::integer - ${maxFailed})
              - greatest(0, json_array_length(j.failed) - ${maxFailed}),
            served_at = clock_timestamp(),
            state = case when j.done + $2 >= total then 'done' else state end,
            ended_at = case when j.done + $2 >= total then clock_timestamp() end,
            devices = case when j.done + $2 >= total and j.action->>'action' = 'remove' then '{}'
                           else devices end
      where id = $1`,
    [id, count, JSON.stringify(failed), failed.length],
  );
}

/** Others have their turn first. */
async function putOffJob(sql: Sql, id: number): Promise<void> {
  await sql.query(`update job set served_at = clock_timestamp() where id = $1`, [id]);
}

/** What is done with each device: whoever does it knows the rest of it. */
export type JobAction = { action: string; labels?: string[]; untilTs?: number } & Record<
  string,
  unknown
>;

/** Whose jobs. `keyId`: only those of this API key; null: all of the account. */
export type JobOwner = { accountId: number; keyId: string | null };

type NewJob = {
  accountId: number;
  keyId: string | null;
  action: JobAction;
  /** Only with devices that have one of these; null: with any. */
  labels: readonly string[] | null;
  actor: Actor;
  devices: readonly string[];
  /** ms */
  ts: number;
};

/** Its identifier. One without devices is done. */
async function insertJob(tx: Sql, job: NewJob): Promise<string> {
  const { accountId, keyId, action, labels, actor, devices, ts } = job;
  const { rows } = await tx.query<{ uuid: string }>(
    `insert into job (account_id, key_id, action, labels, actor, devices, total, created_at,
                      state, ended_at)
     select $1, $2, $3, $4, $5, d.uuids, cardinality(d.uuids), ms_to_timestamp($7),
            case when cardinality(d.uuids) = 0 then 'done' else 'running' end,
            case when cardinality(d.uuids) = 0 then ms_to_timestamp($7) end
       from (select string_to_array($6, ',')::uuid[] as uuids) d
     returning uuid`,
    [accountId, keyId, JSON.stringify(action), labels, JSON.stringify(actor), devices.join(), ts],
  );
  const [row] = rows;
  if (!row) throw new Error('A job was not stored.');
  return row.uuid;
}

/** Stopped with more devices left than these, a job keeps its place. */
const freeDevices = 100;
/** For so long, of each device that was left, ms: as it would take to do something with it, and no less. */
const restMsOfDevice = 1;

/**
 * Of an account: jobs under way, those that were stopped and keep their place for a while, as their lists of devices
 * were written, and in how many ms the first of these gives it up.
 */
async function countPlaces(
  sql: Sql,
  accountId: number,
  nowTs: WallMs,
): Promise<{ running: number; resting: number; restMs: number }> {
  const { rows } = await sql.query<{ running: number; resting: number; restMs: number }>(
    `select count(*) filter (where state = 'running') as running,
            count(*) filter (where rest_ms > 0) as resting,
            coalesce(min(rest_ms) filter (where rest_ms > 0), 0)::float8 as "restMs"
       from (select state,
                    case when state = 'stopped' and total - done > ${freeDevices}
                         then extract(epoch from ended_at) * 1000 - $2::float8
                              + (total - done) * ${restMsOfDevice}
                         else 0 end as rest_ms
               from job where account_id = $1 and state <> 'done') j`,
    [accountId, nowTs],
  );
  return rows[0] ?? { running: 0, resting: 0, restMs: 0 };
}

type FoundJob = {
  jobId: string;
  action: JobAction;
  state: JobState;
  done: number;
  of: number;
  failed: JobFailure[];
  failedMore: number;
  startedTs: number;
  endedTs: number | null;
};

type FoundEntry = Omit<FoundJob, 'failed' | 'failedMore'> & { failures: number };

const columns = `uuid as "jobId", action, state, done, total as of, created_at as "startedTs",
  ended_at as "endedTs"`;
const isOwn = 'account_id = $1 and ($2::uuid is null or key_id = $2)';

/** Newest first; without the devices that failed. */
export async function listJobs(
  sql: Sql,
  { accountId, keyId }: JobOwner,
  limit: number,
): Promise<FoundEntry[]> {
  const { rows } = await sql.query<FoundEntry>(
    `select ${columns}, json_array_length(failed) + failed_more as failures
       from job
      where ${isOwn}
      order by id desc
      limit $3`,
    [accountId, keyId, limit],
  );
  return rows;
}

/** Null where there is none. */
export async function findJob(
  sql: Sql,
  { accountId, keyId }: JobOwner,
  jobId: string,
): Promise<FoundJob | null> {
  const { rows } = await sql.query<FoundJob>(
    `select ${columns}, failed, failed_more as "failedMore" from job where ${isOwn} and uuid = $3`,
    [accountId, keyId, jobId],
  );
  return rows[0] ?? null;
}

/**
 * The devices with which a job did something, for whoever takes it back; null where there is no such job, it has not
 * ended, or they are forgotten.
 */
export async function listJobDevices(
  sql: Sql,
  { accountId, keyId }: JobOwner,
  jobId: string,
): Promise<string[] | null> {
  const { rows } = await sql.query<{ uuids: string[] }>(
    `select devices::text[] as uuids
       from job
      where ${isOwn} and uuid = $3 and state <> 'running' and cardinality(devices) > 0`,
    [accountId, keyId, jobId],
  );
  return rows[0]?.uuids ?? null;
}

/** False where there is none. One that has ended stays as it is, and its list of devices is not written again. */
export async function stopJob(
  sql: Sql,
  { accountId, keyId }: JobOwner,
  jobId: string,
  ts: number,
): Promise<boolean> {
  const { rowCount } = await sql.query(
    `with stopped as (
       update job
          set state = 'stopped', ended_at = ms_to_timestamp($4), devices = devices[1 : done]
        where ${isOwn} and uuid = $3 and state = 'running')
     select from job where ${isOwn} and uuid = $3`,
    [accountId, keyId, jobId, ts],
  );
  return rowCount === 1;
}

type Forget = {
  accountId: number | null;
  keep: number;
  sinceTs: number;
  devicesSinceTs: number;
};

/**
 * Of an account's jobs that have ended the newest stay; and of all those that ended since `sinceTs` (ms). Which
 * devices they were about stays of those that ended since `devicesSinceTs`.
 */
export async function forgetJobs(
  sql: Sql,
  { accountId, keep, sinceTs, devicesSinceTs }: Forget,
): Promise<void> {
  await sql.query(
    `update job set devices = '{}'
      where state <> 'running' and ended_at < ms_to_timestamp($2) and devices <> '{}'
        and ($1::bigint is null or account_id = $1)`,
    [accountId, devicesSinceTs],
  );
  await sql.query(
    `delete from job
      where state <> 'running'
        and (ended_at < ms_to_timestamp($3)
             or id in (select id from job
                        where account_id = $1 and state <> 'running'
                        order by id desc
                       offset $2))
        and ($1::bigint is null or account_id = $1)`,
    [accountId, keep, sinceTs],
  );
}

export const JobParams = z.object({ jobId: uuidParam.meta({ example: exampleIds.job }) });

/** `stopped`: by whoever asked for it; what was done by then stays done. */
const JobState = z.enum(['running', 'done', 'stopped']);
type JobState = z.infer<typeof JobState>;

const JobFailure = z
  .object({
    deviceAuthUuid: z.guid(),
    reason: z.string().meta({
      description:
        'no-such-device, too-many-labels, took-too-long, or internal-error: the log has the details.',
    }),
  })
  .meta({ id: 'JobFailure' });
type JobFailure = z.infer<typeof JobFailure>;

const common = {
  action: z.string(),
  labels: z.array(z.string()).optional().meta({ description: 'For label and unlabel.' }),
  untilTs: timestamp.optional().meta({ description: 'For mute.' }),
  state: JobState,
  done: z.int().meta({ description: 'Devices processed so far, including failed ones.' }),
  of: z.int().meta({ description: 'All devices of the job.' }),
  startedTs: timestamp,
  endedTs: timestamp.optional(),
};

export const Job = z.object({
  ...common,
  failed: z.array(JobFailure).meta({ description: 'The first thousand.' }),
  failedMore: z.int().optional().meta({ description: 'How many more devices failed.' }),
  timestamp,
});

export const JobList = z.object({
  jobs: z.array(
    z
      .object({
        jobId: z.guid(),
        ...common,
        failures: z.int().meta({ description: 'Devices for which the action failed.' }),
      })
      .meta({ id: 'JobEntry' }),
  ),
  timestamp,
});

export type JobList = z.infer<typeof JobList>;
export type Job = z.infer<typeof Job>;

const StartedJob = z.object({ jobId: z.guid(), timestamp });
type StartedJob = z.infer<typeof StartedJob>;

/** Jobs of an account that have ended and are kept, and how long at most. */
const keptJobs = 100;
const keptMs = 30 * 86_400_000;
/** Which devices a job was about is kept so long after its end: for taking it back. */
const devicesKeptMs = 3_600_000;

/** What ended before is forgotten, ms. */
export const keptSince = (nowTs: WallMs) => ({
  sinceTs: nowTs - keptMs,
  devicesSinceTs: nowTs - devicesKeptMs,
});

type StartJobDeps = {
  db: Database;
  limitsOf: LimitsOf;
  /** The time by which jobs may be forgotten, ms; null: not now, the clock is in doubt. */
  believedTs: () => WallMs | null;
  /** There is a new job to do. */
  onStarted: () => void;
};

/** A job before its devices are known: `select` finds them within the transaction. */
type JobToStart = Omit<NewJob, 'devices'> & {
  select: (tx: Sql) => Promise<string[]>;
  /** For the answer, ms. */
  now: Clock;
};

type StartJob = (job: JobToStart, keep: Keep<StartedJob> | null) => Promise<StartedJob>;

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
  return new DomainError('too-many-requests', 'Jobs were just stopped: wait a moment.', {
    retryAfterSeconds: Math.ceil(restMs / 1_000),
  });
}
