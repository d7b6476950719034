import type { Database } from '../db/database.ts';
import { stateOf, states } from '../db/error-kind.ts';
import { slicesOf } from '../lib/slices.ts';
import { historyTables, readHistoryKind } from './kind.ts';

/** Devices in one statement, and rows of ordinary tables in one transaction. */
const devicesAtOnce = 50;
const rowsAtOnce = 10_000;

/**
 * Deletes all history of devices that are gone, also from compressed chunks and from the hourly
 * aggregate. A transaction deletes from one chunk, or some thousand rows, so its locks are short.
 * When it is interrupted, the next call continues. Nothing may be stored for these devices any more.
 */
export async function purgeDevices(db: Database, deviceIds: readonly number[]): Promise<void> {
  const kind = await readHistoryKind(db);
  for (const some of slicesOf(deviceIds, devicesAtOnce)) {
    const owners = { device_id: some, series_id: await listSeriesIds(db, some) };
    const purgeRows = kind === 'plain' ? purgeTable : purgeChunks;
    for (const { name, key } of historyTables) await purgeRows(db, name, key[0], owners[key[0]]);
    if (kind === 'timescaledb') await purgeHours(db, owners.series_id);
    await db.query('delete from event_feed where device_id = any($1)', [some]);
    // That an alarm went with its device says nothing of the device, and streams are still to be told.
    await db.query(
      `delete from alarm_change where device_id = any($1) and body ->> 'change' <> 'removed'`,
      [some],
    );
    // Last: measurements name only their series, so without it the rest could not be found.
    await db.query('delete from series where device_id = any($1)', [some]);
  }
}

async function listSeriesIds(db: Database, deviceIds: number[]): Promise<number[]> {
  const { rows } = await db.query<{ id: number }>(
    'select id from series where device_id = any($1::bigint[])',
    [deviceIds],
  );
  return rows.map(({ id }) => id);
}

async function purgeTable(
  db: Database,
  table: string,
  column: string,
  owners: number[],
): Promise<void> {
  for (;;) {
    const { rowCount } = await db.query(
      `delete from ${table}
        where ctid = any(array(
          select ctid from ${table} where ${column} = any($1::bigint[]) limit ${rowsAtOnce}))`,
      [owners],
    );
    if ((rowCount ?? 0) < rowsAtOnce) return;
  }
}

async function purgeChunks(
  db: Database,
  table: string,
  column: string,
  owners: number[],
): Promise<void> {
  const { rows } = await db.query<{ range_start: number; range_end: number }>(
    `select range_start, range_end
       from timescaledb_information.chunks
      where hypertable_schema = current_schema and hypertable_name = $1
      order by range_start`,
    [table],
  );
  for (const { range_start, range_end } of rows) {
    const purge = (from: number, to: number): Promise<unknown> =>
      db.query(
        `delete from ${table}
          where ${column} = any($1::bigint[])
            and ts >= ms_to_timestamp($2) and ts < ms_to_timestamp($3)`,
        [owners, from, to],
      );
    await inHalves(purge, range_start, range_end);
  }
}

/** Less is not tried: something else is wrong. Milliseconds. */
const shortest = 60_000;

/** A range with more rows than the time of a statement is enough for is purged in two. */
async function inHalves(
  purge: (from: number, to: number) => Promise<unknown>,
  from: number,
  to: number,
): Promise<void> {
  try {
    await purge(from, to);
  } catch (error) {
    const { cause } = error instanceof Error ? error : {};
    if (stateOf(cause) !== states.queryCanceled || to - from < shortest) throw error;
    const middle = Math.floor((from + to) / 2);
    await inHalves(purge, from, middle);
    await inHalves(purge, middle, to);
  }
}

/** Until its next refresh the aggregate would still answer with deleted rows. */
async function purgeHours(db: Database, seriesIds: number[]): Promise<void> {
  const { rows } = await db.query<{ relation: string }>(
    `select format('%I.%I', materialization_hypertable_schema, materialization_hypertable_name)
              as relation
       from timescaledb_information.continuous_aggregates
      where view_schema = current_schema and view_name = 'measurement_hour'`,
  );
  for (const { relation } of rows) {
    await db.query(`delete from ${relation} where series_id = any($1::bigint[])`, [seriesIds]);
  }
}
