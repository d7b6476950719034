import type { Sql } from '../db/database.ts';

/** `ts` in milliseconds; a position has its latitude in `val` and its longitude in `long`. */
export type StoredMeasurement = {
  deviceId: number;
  sId: string;
  ts: number;
  val: number;
  long?: number | undefined;
};

/**
 * Stores a batch; what is there already (same sense, time and value) stays once. The sense
 * identifiers must match the configuration's `^0x[0-9A-Fa-f]+$`: the arrays are written here, without
 * quotes, because the driver's own way of writing them costs as much as the insert itself.
 */
export async function storeMeasurements(tx: Sql, rows: readonly StoredMeasurement[]): Promise<void> {
  if (rows.length === 0) return;
  const columns = ['', '', '', '', ''];
  for (const { deviceId, sId, ts, val, long } of rows) {
    columns[0] += `,${deviceId}`;
    columns[1] += `,${sId}`;
    columns[2] += `,${ts / 1_000}`;
    columns[3] += `,${val}`;
    columns[4] += `,${long ?? 'NaN'}`;
  }
  await tx.query({
    name: 'store-measurements',
    text: `
      insert into measurement (device_id, s_id, ts, val, long)
      select device_id, s_id, to_timestamp(seconds), val, long
        from unnest($1::bigint[], $2::text[], $3::float8[], $4::float8[], $5::float8[])
          as m (device_id, s_id, seconds, val, long)
      on conflict do nothing`,
    values: columns.map((column) => `{${column.slice(1)}}`),
  });
}
