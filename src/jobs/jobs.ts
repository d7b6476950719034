import type { Actor } from '../audit/entry.ts';
import type { Sql } from '../db/sql.ts';
import type { JobFailure, JobState } from './schema.ts';

/** What is done with each device: whoever does it knows the rest of it. */
export type JobAction = { action: string; labels?: string[]; untilTs?: number } & Record<
  string,
  unknown
>;

/** Whose jobs. `keyId`: only those of this API key; null: all of the account. */
export type JobOwner = { accountId: number; keyId: string | null };

export type NewJob = {
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
export async function insertJob(tx: Sql, job: NewJob): Promise<string> {
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
export async function countPlaces(
  sql: Sql,
  accountId: number,
  nowTs: number,
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

export type FoundJob = {
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

export type FoundEntry = Omit<FoundJob, 'failed' | 'failedMore'> & { failures: number };

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

export type Forget = {
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
