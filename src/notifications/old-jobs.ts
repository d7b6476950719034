import type { Sql } from '../db/sql.ts';
import { dueChannel } from './recipients.ts';
import type { WallMs } from '../lib/clock-readings.ts';

// 0.2.0 and 0.3.0 deliver push messages and SMS by jobs in a schema of their own (that of a library, graphile-worker),
// and their messages have no `due_at`. They may still run beside this version, or have left jobs behind. Whoever has
// the job of a message delivers it: so this file deletes a job in the statement that moves its message into the outbox.

/** The schema of those jobs. We leave it in place where it exists, and never create it. */
const jobSchema = 'graphile_worker';

const jobs = `${jobSchema}._private_jobs`;
const tasks = `${jobSchema}._private_tasks`;
const deliverTask = 'deliver-notification';

/** No attempt takes this long: the process that has such a job has ended. */
const abandonedAfterMs = 120_000;

/**
 * Moves the messages of jobs that nobody works on into the outbox, to be delivered at once (`nowTs`, ms since the
 * epoch). Returns false if this role may not see or delete the jobs; they then stay with the program that made them.
 */
export async function takeOldMessages(sql: Sql, nowTs: WallMs): Promise<boolean> {
  const access = await findAccess(sql);
  if (access !== 'all') return access === 'none there';
  await sql.query(
    `with taken as (
       delete from ${jobs} j
        using ${tasks} t
        where t.id = j.task_id and t.identifier = $2
          and (j.locked_at is null or j.locked_at < now() - $3 * interval '1 millisecond')
       returning (j.payload ->> 'notificationId')::bigint as id
     ), due as (
       update notification n
          set due_at = ms_to_timestamp($1)
         from taken
        where n.id = taken.id and n.state = 'queued' and n.contact_id is null and n.due_at is null
       returning n.id
     )
     select pg_notify($4, '') from due limit 1`,
    [nowTs, deliverTask, abandonedAfterMs, dueChannel],
  );
  return true;
}

/** Whether there are such jobs, and this role may take them. Row security would hide them from all but their owner. */
async function findAccess(sql: Sql): Promise<'none there' | 'all' | 'no right'> {
  const { rows } = await sql.query<{ mayTake: boolean }>(
    `select bool_and(
              has_schema_privilege(n.oid, 'usage')
              and has_table_privilege(c.oid, 'select')
              and (relname = '_private_tasks' or has_table_privilege(c.oid, 'delete'))
              and not row_security_active(c.oid)) as "mayTake"
       from pg_class c
       join pg_namespace n on n.oid = relnamespace
      where nspname = $1 and relname in ('_private_jobs', '_private_tasks')
     having count(*) = 2`,
    [jobSchema],
  );
  if (rows[0] === undefined) return 'none there';
  return rows[0].mayTake ? 'all' : 'no right';
}

/** Makes all such messages due in a database restored from a portable copy, which does not contain their jobs. */
export async function makeOldMessagesDue(sql: Sql): Promise<void> {
  await sql.query(
    `update notification
        set due_at = service_now()
      where state = 'queued' and kind in ('push', 'sms') and contact_id is null and due_at is null`,
  );
}
