import { addJobs, jobSpec } from '../db/jobs.ts';
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
                ${jobSpec({ task: '$1', payload: `json_build_object('notificationId', id)`, maxRuns: '$2', key: `'notification ' || id` })}
                order by id) as specs
         from notification
        where state = 'queued' and kind in ('push', 'sms')
       having count(*) > 0
     )
     select count(*) from due cross join lateral ${addJobs}(due.specs)`,
    [deliverTask, maxRuns],
  );
}
