import { deleteInBatches } from '../db/delete-in-batches.ts';
import type { Sql } from '../db/sql.ts';

/** Forgets alarms that closed before `beforeTs` (ms), some thousand rows a transaction. Gives how many went. */
export function forgetAlarms(db: Sql, beforeTs: number, signal?: AbortSignal): Promise<number> {
  const deleteSome = (limit: number) =>
    db.query(
      `delete from alarm
        where id = any(array(
          select id from alarm where closed_at < ms_to_timestamp($1) limit $2
             for update skip locked))`,
      [beforeTs, limit],
    );
  return deleteInBatches(deleteSome, { signal });
}
