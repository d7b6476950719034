import { addJobs, jobSpec } from '../db/jobs.ts';
import type { Sql } from '../db/sql.ts';
import { dueChannel } from './turn.ts';

/** The task of a job that an older program has made for one push or SMS. */
export const deliverTask = 'deliver-notification';

/** A job must outlast processes that end while they hold it. */
const maxRuns = 100;

/**
 * Gives the message of an older program's job its place among those that take turns. Nothing else delivers it:
 * who holds its job has it, and without a job it has a turn.
 */
export async function takeOver(sql: Sql, notificationId: number, nowMs: number): Promise<void> {
  await sql.query(
    `with taken as (
       update notification set due_at = ms_to_timestamp($2)
        where id = $1 and state = 'queued' and contact_id is null and due_at is null
       returning id
     )
     select pg_notify($3, '') from taken`,
    [notificationId, nowMs, dueChannel],
  );
}

/**
 * Makes the jobs of all push and SMS of older programs that wait, in a database that came without the tables
 * of jobs; they are there by now (`migrateWorker`). Called again it makes none twice. The schema may still be that of
 * an older program, without `due_at`.
 */
export async function requeueNotifications(sql: Sql): Promise<void> {
  await sql.query(
    `with due as (
       select array_agg(
                ${jobSpec({ task: '$1', payload: `json_build_object('notificationId', id)`, maxRuns: '$2', key: `'notification ' || id` })}
                order by id) as specs
         from notification n
        where state = 'queued' and kind in ('push', 'sms') and to_jsonb(n) ->> 'due_at' is null
       having count(*) > 0
     )
     select count(*) from due cross join lateral ${addJobs}(due.specs)`,
    [deliverTask, maxRuns],
  );
}
