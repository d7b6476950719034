import type { Database } from '../database.ts';
import { historyTables, readHistoryKind } from './kind.ts';

/** So many devices share a statement, and so many rows of ordinary tables a transaction. */
const devicesAtOnce = 50;
const rowsAtOnce = 10_000;

/**
 * Deletes all history of devices that are gone, also from compressed chunks and from the hourly
 * aggregate. A transaction deletes one chunk's share, or some thousand rows, so nobody waits long for
 * one; when it is broken off, the next call goes on. Nothing may be stored for these devices any more.
 */
export async function purgeDevices(db: Database, deviceIds: readonly number[]): Promise<void> {
  const kind = await readHistoryKind(db);
  for (let at = 0; at < deviceIds.length; at += devicesAtOnce) {
    const some = deviceIds.slice(at, at + devicesAtOnce);
    for (const { name } of historyTables) {
      if (kind === 'plain') await purgeTable(db, name, some);
      else await purgeChunks(db, name, some);
    }
    if (kind === 'timescaledb') await purgeHours(db, some);
    await db.query('delete from event_feed where device_id = any($1)', [some]);
    // Last: it tells that there is something left to purge.
    await db.query('delete from measured_sense where device_id = any($1)', [some]);
  }
}

async function purgeTable(db: Database, table: string, deviceIds: number[]): Promise<void> {
  for (;;) {
    const { rowCount } = await db.query(
      `delete from ${table}
        where ctid = any(array(
          select ctid from ${table} where device_id = any($1::bigint[]) limit ${rowsAtOnce}))`,
      [deviceIds],
    );
    if ((rowCount ?? 0) < rowsAtOnce) return;
  }
}

async function purgeChunks(db: Database, table: string, deviceIds: number[]): Promise<void> {
  const { rows } = await db.query<{ range_start: number; range_end: number }>(
    `select range_start, range_end
       from timescaledb_information.chunks
      where hypertable_schema = current_schema and hypertable_name = $1
      order by range_start`,
    [table],
  );
  for (const { range_start, range_end } of rows) {
    await db.query(
      `delete from ${table}
        where device_id = any($1::bigint[])
          and ts >= ms_to_timestamp($2) and ts < ms_to_timestamp($3)`,
      [deviceIds, range_start, range_end],
    );
  }
}

/** The aggregate would forget them at its next refresh; meanwhile it would still answer. */
async function purgeHours(db: Database, deviceIds: number[]): Promise<void> {
  const { rows } = await db.query<{ relation: string }>(
    `select format('%I.%I', materialization_hypertable_schema, materialization_hypertable_name)
              as relation
       from timescaledb_information.continuous_aggregates
      where view_schema = current_schema and view_name = 'measurement_hour'`,
  );
  for (const { relation } of rows) {
    await db.query(`delete from ${relation} where device_id = any($1::bigint[])`, [deviceIds]);
  }
}
