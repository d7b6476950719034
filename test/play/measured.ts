import type { Sql } from '../../src/db/sql.ts';

export const minuteMs = 60_000;

/** Minutes after a start, a value, and how many minutes later it arrived. */
export type Measured = [minute: number, val: number, late?: number];

/** Stores values of a sense, as they came. */
export async function measureAt(
  db: Sql,
  {
    uuid,
    sId = '0x01',
    start,
    values,
  }: { uuid: string; sId?: string; start: number; values: Measured[] },
): Promise<void> {
  await db.query(
    `with one as (
       insert into series (device_id, s_id) select id, $5 from device where uuid = $1
       on conflict (device_id, s_id) do update set s_id = excluded.s_id returning id
     )
     insert into measurement (series_id, ts, val, arrived)
     select one.id, ms_to_timestamp(m.ts), m.val, m.arrived
       from one, unnest($2::bigint[], $3::float8[], $4::bigint[]) as m (ts, val, arrived)`,
    [
      uuid,
      values.map(([minute]) => start + minute * minuteMs),
      values.map(([, val]) => val),
      values.map(([minute, , late = 0]) => start + (minute + late) * minuteMs),
      sId,
    ],
  );
}

/** Warmer than that for ten minutes: an alarm. */
export function warm(isGt: number) {
  const causes = [{ sId: '0x01', threshold: { forMs: 10 * minuteMs }, thresholds: { isGt } }];
  const event = { evId: 1, eventLog: true, causes, actions: { alarm: true } };
  return { puId: 1, initStId: 1, states: [{ stId: 1, events: [event] }] };
}
