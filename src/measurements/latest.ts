import type { QueryConfig } from 'pg';
import type { Sql } from '../db/sql.ts';
import type { ExportedDevice } from '../exports/list-devices.ts';
import { describeSenses } from './describe-senses.ts';
import { toMeasurementView } from './queries.ts';
import type { LatestView } from './schema.ts';

type LatestRow = {
  device_id: number;
  s_id: string;
  ts: number;
  val: number;
  long: number;
};

/** The newest measurement of each sense of these devices that ever measured something, by device and sense. */
export async function listLatest(
  sql: Sql,
  devices: ExportedDevice[],
  senses: string[] | undefined,
  { isDescribed = false } = {},
): Promise<LatestView[]> {
  if (devices.length === 0) return [];
  const ids = devices.map(({ id }) => id);
  const [{ rows }, described] = await Promise.all([
    sql.query<LatestRow>(latestQuery(ids, senses)),
    isDescribed ? describeSenses(sql, ids, senses) : null,
  ]);
  const uuids = new Map(devices.map(({ id, uuid }) => [id, uuid]));
  return rows.map((row) => ({
    deviceAuthUuid: uuids.get(row.device_id) ?? '',
    ...toMeasurementView(row),
    ...described?.get(`${row.device_id} ${row.s_id}`),
  }));
}

/** The index is read backwards from the newest chunk on: a series ends where it has its first row. */
export function latestQuery(deviceIds: number[], senses: string[] | undefined): QueryConfig {
  return {
    name: 'list-latest',
    text: `
      select series.device_id, series.s_id, newest.ts, newest.val, newest.long
        from unnest($1::bigint[]) with ordinality as wanted (device_id, place)
        join series using (device_id)
       cross join lateral (
         select m.ts, m.val, m.long
           from measurement m
          where m.series_id = series.id
          order by m.ts desc
          limit 1) newest
       where $2::text[] is null or series.s_id = any($2)
       order by wanted.place, series.s_id`,
    values: [deviceIds, senses],
  };
}
