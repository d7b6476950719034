import { CopyRows } from '../db/copy-in.ts';
import type { Sql, Transaction } from '../db/database.ts';
import type { KnownSenses } from './known-senses.ts';

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
 * `known` spares the look whether a sense is new.
 */
export async function storeMeasurements(
  tx: Sql,
  rows: readonly StoredMeasurement[],
  known?: KnownSenses,
): Promise<void> {
  if (rows.length === 0) return;
  await Promise.all([insertMeasurements(tx, rows), storeSenses(tx, rows, known)]);
}

/**
 * The same of a batch in which nothing is expected to be there already: takes the database half the
 * work. Throws a `unique_violation` (23505) where something is; the transaction is void then.
 */
export async function addMeasurements(
  tx: Transaction,
  rows: readonly StoredMeasurement[],
  known?: KnownSenses,
): Promise<void> {
  if (rows.length === 0) return;
  await Promise.all([copyMeasurements(tx, rows), storeSenses(tx, rows, known)]);
}

async function storeSenses(
  tx: Sql,
  rows: readonly StoredMeasurement[],
  known?: KnownSenses,
): Promise<void> {
  const senses = new Map<string, StoredMeasurement>();
  for (const row of rows) {
    if (!known?.has(row.deviceId, row.sId)) senses.set(`${row.deviceId} ${row.sId}`, row);
  }
  if (senses.size === 0) return;
  const fresh = await insertSenses(tx, [...senses.values()]);
  for (const name of fresh) senses.delete(name);
  // What this transaction adds may yet be rolled back; what it found is there for good.
  for (const { deviceId, sId } of senses.values()) known?.add(deviceId, sId);
}

async function insertMeasurements(tx: Sql, rows: readonly StoredMeasurement[]): Promise<void> {
  let deviceIds = '';
  let sIds = '';
  let seconds = '';
  let vals = '';
  let longs = '';
  for (const row of rows) {
    deviceIds += `,${row.deviceId}`;
    sIds += `,${row.sId}`;
    seconds += `,${row.ts / 1_000}`;
    vals += `,${row.val}`;
    longs += `,${row.long ?? 'NaN'}`;
  }
  await tx.query({
    name: 'store-measurements',
    text: `
      insert into measurement (device_id, s_id, ts, val, long)
      select device_id, s_id, to_timestamp(seconds), val, long
        from unnest($1::bigint[], $2::text[], $3::float8[], $4::float8[], $5::float8[])
          as m (device_id, s_id, seconds, val, long)
          on conflict do nothing`,
    values: [deviceIds, sIds, seconds, vals, longs].map((list) => `{${list.slice(1)}}`),
  });
}

function copyMeasurements(tx: Transaction, rows: readonly StoredMeasurement[]): Promise<void> {
  const copied = new CopyRows();
  for (const { deviceId, sId, ts, val, long = NaN } of rows)
    // Zero has no sign in the history; nor has it in JSON as it is written here.
    copied
      .row(5)
      .bigint(deviceId)
      .text(sId)
      .timestamptz(ts)
      .float8(val + 0)
      .float8(long + 0);
  return tx.copyIn(
    'copy measurement (device_id, s_id, ts, val, long) from stdin (format binary)',
    copied.end(),
  );
}

/** Gives the names of those that were not there. */
async function insertSenses(tx: Sql, rows: StoredMeasurement[]): Promise<string[]> {
  const inserted = await tx.query<{ device_id: number; s_id: string }>({
    name: 'store-measured-senses',
    // In order, so that two transactions that add the same senses wait for each other in one direction.
    text: `
      insert into measured_sense (device_id, s_id)
      select device_id, s_id
        from unnest($1::bigint[], $2::text[]) as m (device_id, s_id)
       order by device_id, s_id
          on conflict do nothing
      returning device_id, s_id`,
    values: [rows.map((row) => row.deviceId), rows.map((row) => row.sId)],
  });
  return inserted.rows.map((row) => `${row.device_id} ${row.s_id}`);
}
