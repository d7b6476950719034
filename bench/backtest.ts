import { Evaluator } from '../src/engine/evaluator.ts';
import { compileProfile } from '../src/engine/compile.ts';
import { startRuntime } from '../src/engine/runtime.ts';
import { Purpose } from '../src/contract/purpose.ts';
import { readOptionsOrExit } from '../src/cli/command-line.ts';
import { CopiedRows, type Database, openDatabase } from '../src/db/database.ts';
import { findCurrentSchema } from '../src/db/schema-state.ts';
import { type Backtest, runBacktest } from '../src/play/backtest.ts';
import { storedHistory } from '../src/play/history.ts';
import { startBenchDatabase, withClient } from './database.ts';
import { describeMachine } from './machine.ts';
import { numberOf } from './options.ts';
import { createReleases } from './releases.ts';

const usage = `Usage: npm run bench:backtest -- [--devices 20] [--rounds 3]

Plays a profile on a year of one device at a minute, and on 30 days of --devices devices: compressed, if the machine has
TimescaleDB. Beside it, on the same year: reading the rows, and the engine alone on these rows. Says how much larger the
process was meanwhile than before.`;

const minuteMs = 60_000;
const dayMs = 1_440 * minuteMs;
const rules = { ringMaxAgeMs: 900_000, reportedForMs: 3_600_000 };

await main(
  readOptionsOrExit(
    usage,
    { devices: { type: 'string' }, rounds: { type: 'string' } },
    (values) => ({
      devices: numberOf('devices', values.devices, 20),
      rounds: numberOf('rounds', values.rounds, 3),
    }),
  ),
);

async function main({ devices, rounds }: { devices: number; rounds: number }): Promise<void> {
  const releases = createReleases();
  try {
    const database = await startBenchDatabase();
    releases.defer(() => database.remove());
    const connectionString = await database.create('backtest');
    console.log(describeMachine(database.description));
    const nowTs = Date.now();
    await fill(connectionString, { devices, nowTs });
    const db = await open(connectionString);
    releases.defer(() => db.close());
    const { rows } = await db.query<{ id: number; uuid: string }>(
      'select id, uuid from device order by id',
    );
    const known = rows.map((row) => ({ ...row, listening: { gaps: [] } }));
    const year = { startTs: nowTs - 365 * dayMs, endTs: nowTs, devices: known.slice(0, 1) };
    const month = { startTs: nowTs - 30 * dayMs, endTs: nowTs, devices: known };
    for (let round = 0; round < rounds; round += 1) {
      await timed('a year, against nothing', () => play(db, { ...year, against: null }));
      const against = { purposes: [warm(300_000, 9.5)] };
      await timed('a year, against another', () => play(db, { ...year, against }));
      await timed('a year, its rows', () => readYear(db, () => undefined));
      await timed('a year, its rows and the engine', () => runEngine(db));
    }
    await timed(`30 days of ${devices}`, () => play(db, { ...month, against: null }));
  } finally {
    await releases.downTo(0);
  }
}

/** Warm for so long: one sense, by time and by values. */
function warm(forMs: number, isGt: number): Purpose {
  return Purpose.parse({
    puId: 1,
    initStId: 1,
    states: [
      {
        stId: 1,
        events: [
          {
            evId: 1,
            name: 'warm',
            eventLog: true,
            actions: { alarm: true },
            causes: [{ sId: '0x10', threshold: { forMs, count: 3 }, thresholds: { isGt } }],
          },
        ],
      },
    ],
  });
}

type Played = Pick<Backtest, 'startTs' | 'endTs' | 'devices' | 'against'>;

async function play(db: Database, given: Played): Promise<string> {
  const backtest: Backtest = { ...given, candidate: [warm(600_000, 9)], map: [], rules };
  let last = '';
  for await (const line of runBacktest(storedHistory(db), backtest, given.endTs, { values: 0 }))
    if (line) last = JSON.stringify(line);
  return last;
}

/** The plainest way: the engine takes each value as it was measured, and time passes between them. */
async function runEngine(db: Database): Promise<string> {
  const profile = compileProfile('', [warm(600_000, 9)]);
  const evaluator = new Evaluator(profile, startRuntime(profile, 0));
  let firings = 0;
  await readYear(db, (ts, val, arrivedTs) => {
    for (const tick of evaluator.ticksUntil(arrivedTs)) firings += tick.firings.length;
    const moment = { t: ts, arrivedTs };
    for (const tick of evaluator.ticksForcedBy('0x10', moment)) firings += tick.firings.length;
    firings += evaluator.measure({ sId: '0x10', ts, val }, moment, false).firings.length;
  });
  return `${firings} firings`;
}

/** The rows of the first device, by COPY. */
async function readYear(
  db: Database,
  onRow: (ts: number, val: number, arrivedTs: number) => void,
): Promise<string> {
  const copied = new CopiedRows();
  let count = 0;
  await db.copyOut(
    `copy (select ts, val, arrived from measurement where series_id = 1 order by ts)
       to stdout (format binary)`,
    (row) => {
      if (!copied.begin(row)) return;
      count += 1;
      onRow(Math.floor(copied.timestamptz() / 1_000), copied.float8(), copied.bigint());
    },
  );
  return `${count} rows`;
}

async function timed(name: string, work: () => Promise<string>): Promise<void> {
  const began = performance.now();
  const before = process.cpuUsage();
  const baseBytes = process.memoryUsage.rss();
  let mostBytes = baseBytes;
  const look = () => (mostBytes = Math.max(mostBytes, process.memoryUsage.rss()));
  const looking = setInterval(look, 10);
  const result = await work();
  clearInterval(looking);
  look();
  const { user, system } = process.cpuUsage(before);
  const cpuMs = Math.round((user + system) / 1_000);
  const ms = Math.round(performance.now() - began);
  const mib = Math.round((mostBytes - baseBytes) / 1_048_576);
  console.log(`${name}: ${ms} ms, ${cpuMs} ms of a processor here, ${mib} MiB more (${result})`);
}

async function open(connectionString: string): Promise<Database> {
  const schema = await withClient(connectionString, findCurrentSchema);
  return openDatabase({
    connectionString,
    schema: schema?.name ?? '',
    maxConnections: 1,
    connectTimeoutMs: 5_000,
    statementTimeoutMs: 60_000,
    onIdleError: () => undefined,
  });
}

/** The first device has a year, the others 30 days, each value some hundred milliseconds late. */
async function fill(
  connectionString: string,
  { devices, nowTs }: { devices: number; nowTs: number },
): Promise<void> {
  const db = await open(connectionString);
  await db.query(`insert into account (email, password_hash) values ('a@example.org', '')`);
  await db.query(
    `insert into device (account_id, connector_id, configuration)
     select 1, 1, '{}' from generate_series(1, $1::int)`,
    [devices],
  );
  await db.query(`insert into series (device_id, s_id) select id, '0x10' from device order by id`);
  for (let series = 1; series <= devices; series += 1)
    await db.query(
      `insert into measurement (series_id, ts, val, arrived)
       select $1, ms_to_timestamp($2::bigint - g::bigint * ${minuteMs}), 4 + 6 * sin(g / 60.0) + random(),
              $2::bigint - g::bigint * ${minuteMs} + 200 + (random() * 300)::int
         from generate_series(1, $3::int) g`,
      [series, nowTs, (series === 1 ? 365 : 30) * 1_440],
    );
  await db
    .query(`select compress_chunk(c, true) from show_chunks('measurement') c`)
    .catch(() => console.log('Without TimescaleDB nothing is compressed.'));
  await db.query('vacuum analyze measurement');
  await db.close();
}
