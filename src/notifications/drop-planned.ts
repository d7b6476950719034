import type { Sql } from '../db/sql.ts';

/** Of these alarms nobody is told later (`afterMs`): what waits for its turn already goes out all the same. */
export async function dropPlanned(tx: Sql, alarmIds: readonly number[]): Promise<void> {
  await tx.query({
    name: 'notifications-drop-planned',
    text: `delete from notification where alarm_id = any($1::bigint[]) and state = 'planned'`,
    values: [alarmIds],
  });
}
