import type { Actor } from '../audit/entry.ts';
import type { Sql } from '../db/sql.ts';
import type { JobAction } from './jobs.ts';
import type { JobFailure } from './schema.ts';

/** Failed devices of a job that are kept by name. */
const maxFailed = 1_000;

/** The job whose turn it is; those of disabled accounts rest. */
export async function findNext(sql: Sql): Promise<{ id: number; accountId: number } | null> {
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
export async function lockPiece(tx: Sql, id: number, limit: number): Promise<JobPiece | null> {
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
export async function saveProgress(
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
export async function putOffJob(sql: Sql, id: number): Promise<void> {
  await sql.query(`update job set served_at = clock_timestamp() where id = $1`, [id]);
}
