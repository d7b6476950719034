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

/** Of an account, under way. */
export async function countRunning(sql: Sql, accountId: number): Promise<number> {
  const { rows } = await sql.query<{ count: number }>(
    `select count(*) as count from job where account_id = $1 and state = 'running'`,
    [accountId],
  );
  return rows[0]?.count ?? 0;
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

/** False where there is none. One that has ended stays as it is. */
export async function stopJob(
  sql: Sql,
  { accountId, keyId }: JobOwner,
  jobId: string,
  ts: number,
): Promise<boolean> {
  const { rowCount } = await sql.query(
    `update job
        set state = case when state = 'running' then 'stopped' else state end,
            ended_at = coalesce(ended_at, ms_to_timestamp($4)),
            devices = devices[1 : done]
      where ${isOwn} and uuid = $3`,
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
