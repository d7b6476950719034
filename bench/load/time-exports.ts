import { latestQuery } from '../../src/measurements/queries.ts';
import type { Database } from '../../src/db/database.ts';
import {
  devicesOfImport,
  median,
  read,
  seconds,
  tsOf,
  type Bulk,
  type BulkRow,
} from './of-bulk.ts';

const devicesOfList = 10_000;
const sensesOfLatest = 4;

/** Exports of as many points as an import has lines, in each format. */
export async function timeExports(bulk: Bulk, write: (row: BulkRow) => void): Promise<void> {
  const { db, rows } = bulk;
  const { rows: stored } = await db.query<{ count: number; newest: number }>(
    'select count(*), max(ts) as newest from measurement',
  );
  const { count = rows, newest = 0 } = stored[0] ?? {};
  const start = tsOf(rows, 0, 0);
  // A range with about as many points as an import has lines.
  const end = start + Math.floor((newest - start) * (rows / count));
  const query = `devices=${bulk.devices.map(({ uuid }) => uuid).join(',')}&start=${start}&end=${end}`;
  const { rows: counts } = await db.query<{ count: number }>(
    'select count(*) from measurement where ts >= ms_to_timestamp($1) and ts <= ms_to_timestamp($2)',
    [start, end],
  );
  const millions = `${((counts[0]?.count ?? 0) / 1_000_000).toFixed(1)} M points`;
  const database = await seconds(() =>
    db.query(
      `copy (select uuid, s_id, ts, val, long
               from measurement
               join series on series.id = series_id
               join device on device.id = device_id
              where ts >= ms_to_timestamp(${start}) and ts <= ms_to_timestamp(${end})
              order by series_id, ts) to '/dev/null' (format csv)`,
    ),
  );
  for (const [name, accept, more, encoding] of [
    ['CSV', 'text/csv', '', 'identity'],
    ['NDJSON', 'application/x-ndjson', '', 'identity'],
    ['JSON', 'application/json', '', 'identity'],
    ['JSON with gzip', 'application/json', '', 'gzip'],
    ['JSON in columns', 'application/json', '&shape=columns', 'identity'],
  ] as const) {
    const path = `/v2/measurements?${query}${more}`;
    const service = await seconds(() => read(bulk, path, accept, encoding));
    write({ name: `export of ${millions} as ${name}`, service, database });
  }
}

/** What a dashboard reads of a fleet. */
export async function timeLists(bulk: Bulk, write: (row: BulkRow) => void): Promise<void> {
  const { db } = bulk;
  await addDevices(db);
  const latest = await median(() => read(bulk, '/v2/measurements/latest?limit=500'));
  const { rows } = await db.query<{ id: number }>('select id from device order by id limit 500');
  const ids = rows.map(({ id }) => id);
  const bare = await median(() => db.query(latestQuery(ids, undefined)));
  write({
    name: `newest of 500 devices with ${sensesOfLatest} senses`,
    service: latest,
    database: bare,
  });
  const listed = await median(() => read(bulk, '/v2/devices'));
  const listedBare = await median(() => db.query(listOfDevices));
  write({ name: `list of ${devicesOfList} devices`, service: listed, database: listedBare });
}

const listOfDevices = `
  select uuid, name, labels, pu_id, st_id, state_at, connected, last_seen_at
    from device
    join device_state on device_state.device_id = device.id
    left join presence on presence.device_id = device.id
   order by created_at, id`;

/** Adds similar devices, and more senses to the first of them. */
async function addDevices(db: Database): Promise<void> {
  await db.query(
    `with added as (
       insert into device (account_id, connector_id, configuration)
       select account_id, connector_id, configuration
         from (select * from device limit 1) one, generate_series(1, $1)
       returning id)
     insert into device_state (device_id, state_at) select id, now() from added`,
    [devicesOfList - devicesOfImport],
  );
  await db.query(
    `insert into series (device_id, s_id)
     select id, '0x0' || n
       from (select id from device order by id limit 500) device, generate_series(1, $1) n
         on conflict do nothing`,
    [sensesOfLatest],
  );
  await db.query(
    `insert into measurement (series_id, ts, val)
     select id, now() - interval '1 hour', 20 from series`,
  );
  await db.query('vacuum (analyze) device, device_state, series, measurement');
}
