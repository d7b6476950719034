import type { Sql } from '../../db/sql.ts';
import { ofDevice, type SenseClock } from '../rules/sense-clock.ts';

/** Of each sense whose last measurements were all too late: how many, and the newest time that they are older than (ms). */
export async function listLate(
  db: Sql,
  deviceId: number,
): Promise<Map<string, { count: number; newestTs: number }>> {
  const { rows } = await db.query<{ s_id: string; state: SenseClock }>(
    'select s_id, state from sense_clock where device_id = $1 and s_id <> $2',
    [deviceId, ofDevice],
  );
  return new Map(
    rows.flatMap(({ s_id: sId, state: { late, clockTs, newestTs } }) =>
      late ? [[sId, { count: late.total, newestTs: clockTs ?? newestTs }]] : [],
    ),
  );
}
