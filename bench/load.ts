import { readOptionsOrExit } from '../src/cli/command-line.ts';
import { migrate } from '../src/db/migrate.ts';
import { describeStorage } from '../src/db/storage.ts';
import { openDatabase, type Database } from '../src/db/database.ts';
import { startBenchDatabase, withClient } from './database.ts';
import { numberOf } from './options.ts';
import { fill, type Size } from './load/fill.ts';
import { timeBulk } from './load/bulk.ts';
import { timeStreams } from './load/streams.ts';
import { listQuestions, timeQuestions, type Figures, type Question } from './load/questions.ts';

const usage = `Usage: npm run bench:load -- [--rows 10000000] [--small 100000] [--devices 100] [--runs 300] [--loaded]
                      [--bulk 1000000] [--streams]

First part: fills two databases with 90 days of events and measurements, --rows and --small of each, and times queries.
It uses a temporary server, or that of DATABASE_URL: there it creates the databases bench_small and bench_large and keeps
them. --loaded queries what an earlier run left there. --rows 0 skips this part.

Second part: imports and exports --bulk measurements through the service and reads lists. Compares each with what the
database alone takes, and shows how it affects the devices of other accounts. --bulk 0 and --loaded skip this part.

Third part: 1,000 devices send a value a second to 20 streams. --streams runs only this part.`;

const text = { type: 'string' } as const;
const flag = { type: 'boolean', default: false } as const;
const flags = {
  rows: text,
  small: text,
  devices: text,
  runs: text,
  bulk: text,
  loaded: flag,
  streams: flag,
};
const values = readOptionsOrExit(usage, flags, (given) => ({
  rows: given.rows === '0' ? 0 : numberOf('rows', given.rows, 10_000_000),
  small: numberOf('small', given.small, 100_000),
  devices: numberOf('devices', given.devices, 100),
  runs: numberOf('runs', given.runs, 300),
  bulk: given.bulk === '0' ? 0 : numberOf('bulk', given.bulk, 1_000_000),
  loaded: given.loaded,
  streams: given.streams,
}));

const silent = { info: () => undefined, warn: () => undefined };
const tell = (line: string) => console.log(line);

async function load(url: string, name: string, size: Size, nowTs: number): Promise<Database> {
  const storage = await migrate(url, { log: silent });
  tell(
    `${name}: ${size.events} events, ${size.measurements} measurements; ${describeStorage(storage)}`,
  );
  if (!values.loaded) await loadInto(url, storage.schema, size, nowTs);
  // One connection, so that prepared statements get their generic plans, as in a running service.
  return openDatabase({
    connectTimeoutMs: 5_000,
    onIdleError: () => undefined,
    connectionString: url,
    schema: storage.schema,
    maxConnections: 1,
    statementTimeoutMs: 20_000,
  });
}

async function loadInto(url: string, schema: string, size: Size, nowTs: number): Promise<void> {
  const filling = openDatabase({
    connectTimeoutMs: 5_000,
    onIdleError: () => undefined,
    connectionString: url,
    schema,
    maxConnections: 3,
    statementTimeoutMs: 3_600_000,
  });
  await fill(filling, size, nowTs, tell);
  await filling.close();
}

async function createOn(adminUrl: string, name: string): Promise<string> {
  if (values.loaded) return Object.assign(new URL(adminUrl), { pathname: `/${name}` }).href;
  await withClient(adminUrl, async (client) => {
    await client.query(`drop database if exists ${name}`);
    await client.query(`create database ${name}`);
  });
  return Object.assign(new URL(adminUrl), { pathname: `/${name}` }).href;
}

function write(name: string, small: Figures, large: Figures): string {
  const ms = (value: number) => value.toFixed(2).padStart(8);
  const columns = [small.p50, small.p99, large.p50, large.p99].map(ms).join('');
  return `${name.padEnd(62)}${columns}${(large.p50 / small.p50).toFixed(2).padStart(8)}`;
}

type UrlOf = (name: string) => Promise<string>;

async function measureStreams(databaseUrl: string): Promise<void> {
  const load = { devices: 1_000, streams: 20, seconds: 20 };
  const { p50, p99, received, expected } = await timeStreams(databaseUrl, load);
  const name = `a value, from its acknowledgement to ${load.streams} streams, ${load.devices} devices at 1 Hz`;
  const figures = `${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`;
  tell(`\n${name}: ${figures}; ${received} of ${expected} arrived`);
}

async function askQuestions(urlOf: UrlOf): Promise<void> {
  const devices = values.devices;
  const nowTs = Date.now();
  const sizes = [values.small, values.rows].map((rows) => ({
    devices,
    events: rows,
    measurements: rows,
  }));
  const databases: Database[] = [];
  const asked: Question[][] = [];
  for (const [i, size] of sizes.entries()) {
    const name = i === 0 ? 'bench_small' : 'bench_large';
    const db = await load(await urlOf(name), name, size, nowTs);
    databases.push(db);
    asked.push(await listQuestions(db, size, nowTs));
  }
  tell(`\n${'milliseconds'.padEnd(62)}   small      p99   large     p99   ratio`);
  for (const [n, { name }] of (asked[0] ?? []).entries()) {
    const same = asked.flatMap((questions) => questions[n] ?? []);
    const [small, large] = await timeQuestions(same, devices, values.runs);
    if (small && large) tell(write(name, small, large));
  }
  for (const db of databases) await db.close();
}

async function run(): Promise<void> {
  const own = process.env['DATABASE_URL'] === undefined ? await startBenchDatabase() : null;
  const urlOf: UrlOf = (name) =>
    own ? own.create(name) : createOn(process.env['DATABASE_URL'] ?? '', name);
  try {
    if (values.streams) return await measureStreams(await urlOf('bench_streams'));
    if (values.rows > 0) await askQuestions(urlOf);
    const bulk = values.bulk;
    if (bulk > 0 && !values.loaded) {
      const url = await urlOf('bench_bulk');
      await migrate(url, { log: silent });
      await timeBulk(url, bulk, tell);
    }
    await measureStreams(await urlOf('bench_streams'));
  } finally {
    await own?.remove();
  }
}

await run();
