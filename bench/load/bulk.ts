import { readFileSync } from 'node:fs';
import { openDatabase, type Database } from '../../src/db/database.ts';
import { CopyRows } from '../../src/db/copy-rows.ts';
import { readHistoryKind } from '../../src/history/kind.ts';
import { latestQuery } from '../../src/measurements/latest.ts';
import { registerAccount, registerDevices, type RegisteredDevice } from '../api.ts';
import { schemaOf } from '../database.ts';
import { startBenchService, type BenchService } from '../service.ts';

/** What is timed: through the service, and the same by the database alone; seconds. */
type Row = { name: string; service: number; database: number };

const dayMs = 86_400_000;
const devicesOfImport = 100;
const devicesOfList = 10_000;
const sensesOfLatest = 4;
/** Imports and exports are of so many days, all of them old enough to be compressed. */
const days = 20;

/**
 * Measurements in bulk: in by an import, out by exports, and the lists that a dashboard reads. Each beside what the
 * database does for the same alone: `COPY`, or the bare query. On a database without anything in it.
 */
export async function timeBulk(url: string, rows: number, tell: (line: string) => void) {
  const service = await startBenchService({ databaseUrl: url, redisUrl: null });
  const db = openDatabase({
    connectTimeoutMs: 5_000,
    onIdleError: () => undefined,
    connectionString: url,
    schema: await schemaOf(url),
    maxConnections: 1,
    statementTimeoutMs: 600_000,
  });
  const write = ({ name, service: ours, database }: Row) =>
    tell(
      `${name.padEnd(62)}${ours.toFixed(2).padStart(8)}${database.toFixed(2).padStart(8)}${(ours / database).toFixed(2).padStart(8)}`,
    );
  try {
    tell(`\n${'seconds'.padEnd(62)} service    alone   ratio`);
    const { token } = await registerAccount(service.baseUrl);
    const devices = await registerDevices(service.baseUrl, token, devicesOfImport);
    await timeImports({ service, db, token, devices, rows }, write, tell);
    await timeExports({ service, db, token, devices, rows }, write);
    await timeLists({ service, db, token, devices, rows }, write);
  } finally {
    await db.close();
    await service.stop();
  }
}

type Bulk = {
  service: BenchService;
  db: Database;
  token: string;
  devices: RegisteredDevice[];
  rows: number;
};

async function timeImports(bulk: Bulk, write: (row: Row) => void, tell: (line: string) => void) {
  const { db, service, rows } = bulk;
  const millions = `${rows / 1_000_000} M lines`;
  const before = memoryOf(service.pid);
  const fresh = await seconds(() => importLines(bulk, 0));
  write({ name: `import of ${millions}, new`, service: fresh, database: await copyIn(bulk, 100) });
  const again = await seconds(() => importLines(bulk, 0));
  const repeated = await seconds(() => db.query(insertAgain));
  write({ name: `import of ${millions}, there already`, service: again, database: repeated });
  if ((await readHistoryKind(db)) === 'timescaledb') {
    await db.query(`select compress_chunk(chunk, true) from show_chunks('measurement') chunk`);
    const packed = await seconds(() => importLines(bulk, 200));
    const alone = await copyIn(bulk, 300);
    write({
      name: `import of ${millions}, new, into compressed days`,
      service: packed,
      database: alone,
    });
    await db.query(`select compress_chunk(chunk, true) from show_chunks('measurement') chunk`);
  }
  tell(`  memory of the service: ${before} MB before, ${memoryOf(service.pid)} MB at most`);
  await db.query('vacuum (analyze) measurement');
}

/** The same rows again, as a server is asked that knows them; they are looked for and not stored. */
const insertAgain = `
  insert into measurement (series_id, ts, val, long)
  select series_id, ts, val, long from measurement
      on conflict do nothing`;

/** When a line's measurement was: all devices take turns, as in a history that is written day by day. */
function tsOf(rows: number, n: number, offsetMs: number): number {
  const fromTs = Math.floor(Date.now() / dayMs) * dayMs - (days + 5) * dayMs;
  const step = Math.floor((days * dayMs * devicesOfImport) / rows);
  return fromTs + Math.floor(n / devicesOfImport) * step + offsetMs;
}

const linesAtOnce = 2_000;

/** CSV as an export writes it. `offsetMs`: another one gives other measurements. */
function* linesOf({ devices, rows }: Bulk, offsetMs: number): Generator<Buffer> {
  yield Buffer.from('deviceAuthUuid,sId,ts,val,lat,long\r\n');
  for (let from = 0; from < rows; from += linesAtOnce) {
    let text = '';
    for (let n = from; n < Math.min(rows, from + linesAtOnce); n += 1) {
      const { uuid = '' } = devices[n % devices.length] ?? {};
      text += `${uuid},0x01,${tsOf(rows, n, offsetMs)},${20 + (n % 97) / 10},,\r\n`;
    }
    yield Buffer.from(text);
  }
}

async function importLines(bulk: Bulk, offsetMs: number): Promise<void> {
  const { service, token } = bulk;
  const response = await fetch(`${service.baseUrl}/v2/measurements/import`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'text/csv' },
    body: ReadableStream.from(linesOf(bulk, offsetMs)),
    duplex: 'half',
  } as RequestInit);
  const text = await response.text();
  const { rejected } = JSON.parse(text) as { rejected?: number };
  if (response.status !== 200 || rejected !== 0) throw new Error(text.slice(0, 1_000));
}

/** All rows by one `COPY`, without the lines that they are in. */
async function copyIn({ db, devices, rows }: Bulk, offsetMs: number): Promise<number> {
  const { rows: series } = await db.query<{ id: number }>('select id from series order by id');
  const copied = new CopyRows();
  for (let n = 0; n < rows; n += 1) {
    copied
      .row(4)
      .bigint(series[n % devices.length]?.id ?? 0)
      .timestamptz(tsOf(rows, n, offsetMs))
      .float8(20 + (n % 97) / 10)
      .float8(Number.NaN);
  }
  const bytes = copied.end();
  const statement = 'copy measurement (series_id, ts, val, long) from stdin (format binary)';
  return seconds(() => db.transaction((tx) => tx.copyIn(statement, bytes)));
}

async function timeExports(bulk: Bulk, write: (row: Row) => void): Promise<void> {
  const { db, rows } = bulk;
  const { rows: stored } = await db.query<{ count: number; newest: number }>(
    'select count(*), max(ts) as newest from measurement',
  );
  const { count = rows, newest = 0 } = stored[0] ?? {};
  const start = tsOf(rows, 0, 0);
  // So long that about as many points are in it as lines were in an import.
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
  for (const [name, accept, more] of [
    ['CSV', 'text/csv', ''],
    ['NDJSON', 'application/x-ndjson', ''],
    ['JSON', 'application/json', ''],
    ['JSON in columns', 'application/json', '&shape=columns'],
  ] as const) {
    const service = await seconds(() => read(bulk, `/v2/measurements?${query}${more}`, accept));
    write({ name: `export of ${millions} as ${name}`, service, database });
  }
}

async function timeLists(bulk: Bulk, write: (row: Row) => void): Promise<void> {
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

/** Devices like the others, and for the first of them further senses. */
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

async function read({ service, token }: Bulk, path: string, accept = 'application/json') {
  const response = await fetch(service.baseUrl + path, {
    headers: { authorization: `Bearer ${token}`, accept },
  });
  if (!response.ok || !response.body) throw new Error(await response.text());
  for await (const chunk of response.body) void chunk;
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return (performance.now() - startedMs) / 1_000;
}

const timesOfMedian = 21;

async function median(work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < timesOfMedian; n += 1) times.push(await seconds(work));
  return times.toSorted((a, b) => a - b)[Math.floor(timesOfMedian / 2)] ?? 0;
}

/** The most that a process ever had in memory, MB (proc_pid_status(5)). */
function memoryOf(pid: number): number {
  const [, kilobytes] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kilobytes) / 1_024);
}
