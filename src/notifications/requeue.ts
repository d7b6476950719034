import type { Sql } from '../db/sql.ts';
import { deliverTask, maxRuns } from './enqueue-queries.ts';

/**
 * Makes the jobs of all push and SMS that wait for delivery, in a database that came without the
 * tables of jobs; they are there by now (`migrateWorker`). Called again it makes none twice.
 */
export async function requeueNotifications(sql: Sql): Promise<void> {
  await sql.query(
    `with due as (
       select array_agg(
                row($1::text, json_build_object('notificationId', id), null, null, $2::smallint,
                    'notification ' || id, null, null)::graphile_worker.job_spec
                order by id) as specs
         from notification
        where state = 'queued' and kind in ('push', 'sms')
       having count(*) > 0
     )
     select count(*) from due cross join lateral graphile_worker.add_jobs(due.specs)`,
    [deliverTask, maxRuns],
  );
}
