import type { Sql } from '../db/sql.ts';

const batchRows = 10_000;

/** Forgets alarms that closed before `beforeTs` (ms), some thousand rows a transaction. Gives how many went. */
export async function forgetAlarms(
  db: Sql,
  beforeTs: number,
  signal?: AbortSignal,
): Promise<number> {
  let total = 0;
  while (signal?.aborted !== true) {
    const { rowCount } = await db.query(
      `delete from alarm
        where id = any(array(
          select id from alarm where closed_at < ms_to_timestamp($1) limit $2
             for update skip locked))`,
      [beforeTs, batchRows],
    );
    total += rowCount ?? 0;
    if ((rowCount ?? 0) < batchRows) break;
  }
  return total;
}
