import type { Database } from '../db/database.ts';
import { kindOf } from '../db/errors.ts';
import { historyTables, readHistoryKind } from './kind.ts';
import { deletePieceOf, type RemovedDevices, type Turn } from './pieces.ts';

/** What of a feed one statement looks at. */
const feedRows = 20_000;

/**
 * Deletes all history of devices that are gone, also from compressed chunks and from the hourly aggregate. A
 * transaction deletes from one chunk, or some thousand rows, so its locks are short. False where the turn was over
 * before the end; it is called again then, and after it was interrupted. Nothing may be stored for these devices any
 * more. `accountId`: whose they were; unknown, the feeds keep theirs until they are a day old.
 */
export async function purgeDevices(
  db: Database,
  { accountId, deviceIds }: RemovedDevices,
  turn: Turn,
): Promise<boolean> {
  const kind = await readHistoryKind(db);
  const owners = { device_id: deviceIds, series_id: await listSeriesIds(db, deviceIds) };
  const purgeRows = kind === 'plain' ? purgeTable : purgeChunks;
  for (const { name, key } of historyTables)
    if (!(await purgeRows(db, name, { column: key[0], owners: owners[key[0]] }, turn)))
      return false;
  if (kind === 'timescaledb') await purgeHours(db, owners.series_id);
  if (accountId !== null) {
    await purgeFeed(db, 'event_feed', { accountId, deviceIds }, turn);
    await purgeFeed(db, 'alarm_change', { accountId, deviceIds }, turn);
  }
  // Last: measurements name only their series, so without it the rest could not be found.
  return purgeTable(db, 'series', { column: 'device_id', owners: deviceIds }, turn);
}

async function listSeriesIds(db: Database, deviceIds: number[]): Promise<number[]> {
  const { rows } = await db.query<{ id: number }>(
    'select id from series where device_id = any($1::bigint[])',
    [deviceIds],
  );
  return rows.map(({ id }) => id);
}

type Owners = { column: 'device_id' | 'series_id'; owners: number[] };

function purgeTable(
  db: Database,
  table: string,
  { column, owners }: Owners,
  turn: Turn,
): Promise<boolean> {
  const text = deletePieceOf({ table, owner: column });
  return turn.deleteAll((limit) => db.query(text, [owners, limit]));
}

async function purgeChunks(
  db: Database,
  table: string,
  { column, owners }: Owners,
  turn: Turn,
): Promise<boolean> {
  const { rows } = await db.query<{ range_start: number; range_end: number }>(
    `select range_start, range_end
       from timescaledb_information.chunks
      where hypertable_schema = current_schema and hypertable_name = $1
      order by range_start`,
    [table],
  );
  const purge = async (from: number, to: number) => {
    const { rowCount } = await db.query(
      `delete from ${table}
        where ${column} = any($1::bigint[])
          and ts >= ms_to_timestamp($2) and ts < ms_to_timestamp($3)`,
      [owners, from, to],
    );
    return rowCount ?? 0;
  };
  for (const { range_start, range_end } of rows) {
    if (turn.isOver) return false;
    await turn.spend(() => inHalves(purge, range_start, range_end));
  }
  return true;
}

/**
 * A feed is found by its account alone, and of that only the devices' rows go: it is walked from its beginning. That
 * it tells of alarms which went with their device stays: it says nothing of the device, and streams are still to be
 * told.
 */
async function purgeFeed(
  db: Database,
  feed: 'event_feed' | 'alarm_change',
  { accountId, deviceIds }: { accountId: number; deviceIds: number[] },
  turn: Turn,
): Promise<void> {
  const isTold = feed === 'alarm_change' ? `and body ->> 'change' <> 'removed'` : '';
  let last = { xact: '0', seq: 0 };
  for (let count = feedRows; count === feedRows;) {
    const step = async (): Promise<number> => {
      const { rows } = await db.query<{ xact: string; seq: number; count: number }>(
        `with page as materialized (
           select ctid, xact, seq from ${feed}
            where account_id = $1 and (xact, seq) > ($2::xid8, $3::bigint)
            order by xact, seq
            limit ${feedRows}
         ), gone as (
           delete from ${feed}
            where ctid = any(array(select ctid from page))
              and device_id = any($4::bigint[]) ${isTold}
         )
         select xact::text, seq, (select count(*) from page) as count
           from page order by xact desc, seq desc limit 1`,
        [accountId, last.xact, last.seq, deviceIds],
      );
      last = rows[0] ?? last;
      return rows[0]?.count ?? 0;
    };
    count = await turn.spend(step);
  }
}

/** Less is not tried: something else is wrong. Milliseconds. */
const shortest = 60_000;

/** A range with more rows than the time of a statement is enough for is purged in two. Gives how many there were. */
async function inHalves(
  purge: (from: number, to: number) => Promise<number>,
  from: number,
  to: number,
): Promise<number> {
  try {
    return await purge(from, to);
  } catch (error) {
    if (kindOf(error) !== 'cancelled' || to - from < shortest) throw error;
    const middle = Math.floor((from + to) / 2);
    return (await inHalves(purge, from, middle)) + (await inHalves(purge, middle, to));
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
