import { afterEach, beforeEach, expect, test } from 'vitest';
import { compileProfile } from '../../src/engine/compile.ts';
import {
  addedTo,
  encodeRuntime,
  replay,
  type StoredLog,
  type StoredRuntime,
} from '../../src/engine/runtime-codec.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { startRuntime } from '../../src/engine/runtime.ts';
import { Purpose } from '../../src/contract/purpose.ts';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import * as harness from './harness.ts';
import { forever, ingestProcess, measured, now, uplink } from './harness.ts';

let database: TestDatabase;
let device: DeviceIdentity;
let pId: string;
let own: harness.IngestProcess;

/** Enough windows of 1,000 to make their evidence long. One that fills moves the device to and fro. */
const windows = (evId: number, count: number) => ({
  evId,
  causes: Array.from({ length: count }, (_, n) => ({
    sId: '0x01',
    thresholds: { isGt: n },
    threshold: { count: 1_000 },
  })),
});
const move = (needed: number, gotoStId: number) => ({
  evId: 9,
  eventLog: true,
  actions: { engine: { gotoStId } },
  causes: [
    {
      sId: '0x01',
      thresholds: { isGt: 50 },
      threshold: { count: needed },
      measurement: { count: 300 },
    },
  ],
});
const purpose = Purpose.parse({
  puId: 7,
  initStId: 1,
  states: [
    { stId: 1, events: [windows(1, 30), move(150, 2)] },
    { stId: 2, events: [windows(2, 4), move(40, 1)] },
    { stId: 3, isGlobal: true, events: [windows(3, 10), { ...move(97, 2), actions: {} }] },
  ],
});

beforeEach(async () => {
  database = await testDatabase();
  device = await harness.insertDevice(database.db);
  pId = await harness.installProfile(database.db, device, [purpose]);
  own = ingestProcess(database.url);
});
afterEach(async () => {
  await own.close();
  await database.drop();
});

type Stored = { runtime: StoredRuntime; version: number; log: (StoredLog & { version: number })[] };

async function findStored(): Promise<Stored> {
  const { rows } = await database.db.query<Stored>(
    `select runtime, version,
            coalesce((select json_agg(l order by l.version) from evidence_log l
                       where l.device_id = s.device_id), '[]') as log
       from device_state s where device_id = $1`,
    [device.deviceId],
  );
  return rows[0] as Stored;
}

const profileOf = () => compileProfile(pId, [purpose]);

/** The stored evidence, as text. */
async function storedEvidence(): Promise<string> {
  const { runtime, log } = await findStored();
  return encodeRuntime(profileOf(), await replay(profileOf(), runtime, log, async () => undefined));
}

const measure = (evaluator: Evaluator, val: number, ts: number) =>
  evaluator.measure({ sId: '0x01', val, ts }, { t: ts, arrivedTs: ts }, true);

/** The evidence after these values, one a millisecond, by the engine alone. */
function evidenceAfter(vals: number[]): string {
  const evaluator = new Evaluator(profileOf(), startRuntime(profileOf(), now));
  for (const [n, val] of vals.entries()) measure(evaluator, val, now + n);
  return encodeRuntime(profileOf(), evaluator.end());
}

const valueOf = (n: number) => (n * 37) % 101;
const values = (count: number) => Array.from({ length: count }, (_, n) => valueOf(n));

async function send(process: harness.IngestProcess, from: number, count: number): Promise<void> {
  const points = Array.from(
    { length: count },
    (_, n) => [now + from + n, valueOf(from + n)] as [number, number],
  );
  await process.ingest.ingest(device, measured('0x01', ...points), forever);
}

test('a commit adds what was measured, and now and then writes the whole', async () => {
  let wholes = 0;
  let last: unknown;
  let most = 0;
  for (let n = 0; n < 60; n += 1) {
    await send(own, n * 20, 20);
    const { runtime, log } = await findStored();
    if (JSON.stringify(runtime) !== last) wholes += 1;
    last = JSON.stringify(runtime);
    most = Math.max(most, log.length);
    expect(addedTo(runtime, log)).toHaveLength(log.length);
    expect(await storedEvidence()).toBe(evidenceAfter(values((n + 1) * 20)));
  }
  expect(most).toBeGreaterThan(10);
  expect(wholes).toBeGreaterThan(1);
  expect(wholes).toBeLessThan(12);
});

test('processes that take the device from each other, or die, leave the evidence of a single one', async () => {
  const other = ingestProcess(database.url);
  let sent = 0;
  for (const [n, count] of [30, 1, 50, 7, 300, 2, 90, 4, 4, 120, 33, 8].entries()) {
    await send(n % 3 === 0 ? own : other, sent, count);
    sent += count;
    // Forgets what is remembered of the device, as after a restart.
    if (n % 4 === 3) other.ingest.forget();
  }
  await other.close();
  expect(await storedEvidence()).toBe(evidenceAfter(values(sent)));
  const events = await harness.recordedEvents(database.db, device);
  expect(events.filter(({ type }) => type === 'sense').length).toBeGreaterThan(2);
});

test('a state that the device reports ends the log', async () => {
  await send(own, 0, 20);
  await send(own, 20, 20);
  expect((await findStored()).log).toHaveLength(1);
  const report = { puId: 7, stId: 2, ts: now + 40 };
  await own.ingest.ingest(device, uplink({ kind: 'state', report }), forever);
  const { runtime, log } = await findStored();
  expect(runtime).toMatchObject({ stId: 2, local: {} });
  expect(log).toEqual([]);
  await send(own, 41, 10);
  await send(own, 51, 10);
  const before = await storedEvidence();
  own.ingest.forget();
  await send(own, 61, 1);
  expect(JSON.parse(await storedEvidence())).toMatchObject({ stId: 2 });
  expect(await storedEvidence()).not.toBe(before);
});

test('a program that does not know the log ends it by writing the whole', async () => {
  for (let n = 0; n < 3; n += 1) await send(own, n * 20, 20);
  const { runtime, log } = await findStored();
  expect(log).toHaveLength(2);
  const { log: _log, ...whole } = runtime;
  await database.db.query(
    'update device_state set runtime = $2, version = version + 1 where device_id = $1',
    [device.deviceId, JSON.stringify(whole)],
  );
  own.ingest.forget();
  const other = ingestProcess(database.url);
  await send(other, 60, 20);
  const after = await findStored();
  expect(after.log).toEqual([]);
  const profile = profileOf();
  const evaluator = new Evaluator(profile, startRuntime(profile, now));
  // What the other program did not read is not in what it wrote.
  for (const n of [...Array(20).keys(), ...Array.from({ length: 20 }, (_, i) => 60 + i)])
    measure(evaluator, valueOf(n), now + n);
  expect(await storedEvidence()).toBe(encodeRuntime(profile, evaluator.end()));
  await other.close();
});

test('short evidence is written as a whole, as before', async () => {
  const short = await harness.insertDevice(database.db);
  await harness.installProfile(database.db, short, [harness.countingPurpose(3)]);
  for (let n = 0; n < 5; n += 1)
    await own.ingest.ingest(short, measured('0x01', [now + n, 30]), forever);
  const { rows } = await database.db.query<{ runtime: StoredRuntime; log: number }>(
    `select runtime, (select count(*) from evidence_log where device_id = $1) as log
       from device_state where device_id = $1`,
    [short.deviceId],
  );
  expect(rows[0]?.log).toBe(0);
  expect(rows[0]?.runtime).not.toHaveProperty('log');
});
