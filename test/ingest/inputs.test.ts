import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { Purpose } from '../../src/contract/purpose.ts';
import type { DeviceIdentity, UplinkContent } from '../../src/contract/uplink.ts';
import { forgetInputs } from '../../src/ingest/keep-inputs.ts';
import { noteImported } from '../../src/ingest/imported.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import {
  configuration,
  countingPurpose,
  forever,
  ingestProcess,
  insertDevice,
  installProfile,
  type IngestProcess,
  now,
  uplink,
} from './harness.ts';
import { send } from './points.ts';

let database: TestDatabase;
let process: IngestProcess;
let device: DeviceIdentity;
let clockTs: number;
let gaps: { fromTs: number; toTs: number | null }[];
beforeAll(async () => {
  database = await testDatabase();
  process = ingestProcess(database.url, {
    clock: () => clockTs,
    limits: { listeningOf: () => ({ gaps }) },
  });
});
afterAll(async () => {
  await process.close();
  await database.drop();
});
beforeEach(async () => {
  device = await insertDevice(database.db);
  clockTs = now;
  gaps = [];
});

/** Arrival in ms after `now`, place, kind and body of what is kept of the device. */
async function inputs() {
  const { rows } = await database.db.query<{
    arrived: number;
    nth: number;
    kind: string;
    body: unknown;
  }>(
    `select arrived, nth, kind, body from device_input
      where device_id = $1 order by arrived, nth`,
    [device.deviceId],
  );
  return rows.map(({ arrived, nth, kind, body }) => [arrived - now, nth, kind, body]);
}

const kinds = async () => (await inputs()).map(([, , kind]) => kind);
const tell = (content: UplinkContent, arrived: number) =>
  process.ingest.ingest(device, uplink(content, now + arrived), forever);
const tick = () =>
  new Promise<void>((resolve, failed) =>
    process.ingest.tick(device, { isWithdrawn: false, stored: resolve, failed }),
  );

/** 0x01 has been silent for a minute. */
const silence = () => {
  const causes = [{ sId: '0x01', threshold: { noneForMs: 60_000 } }];
  const event = { evId: 3, eventLog: true, causes };
  return Purpose.parse({ puId: 7, initStId: 1, states: [{ stId: 1, events: [event] }] });
};

test('plain measurements keep nothing, with a profile or without', async () => {
  await send(process, device, [[0, 1]]);
  expect(await inputs()).toEqual([]);
  await installProfile(database.db, device, [countingPurpose(1)]);
  await send(process, device, [[1, 2, 1]]);
  const first = await inputs();
  await send(process, device, [
    [2, 3, 2],
    [3, 4, 2],
  ]);
  expect(await inputs()).toEqual(first);
});

test('what is read of a device is kept with its first message, before it', async () => {
  await send(process, device, [[0, 5]]);
  const pId = await installProfile(database.db, device, [countingPurpose(1)]);
  await send(process, device, [[1_000, 30, 1_000]]);
  const all = await inputs();
  expect(all.map((one) => one.slice(0, 3))).toEqual([
    [1_000, 0, 'given'],
    [1_000, 1, 'current'],
  ]);
  expect(all[0]?.[3]).toMatchObject({
    pending: { pId },
    current: null,
    answers: false,
    place: { puId: 0, stId: 0 },
    sIds: ['0x01', '0x02'],
    seen: { '0x01': { ts: now, vals: [5] } },
    runtime: null,
  });
  const { rows } = await database.db.query<{ nth: number }>(
    `select m.nth from measurement m join series s on s.id = m.series_id
      where s.device_id = $1 order by m.ts desc limit 1`,
    [device.deviceId],
  );
  expect(rows).toEqual([{ nth: 2 }]);
});

test('it is kept once, and again after it changed elsewhere', async () => {
  await installProfile(database.db, device, [countingPurpose(2)]);
  await send(process, device, [[0, 30]]);
  process.bus.publish('device', device);
  await send(process, device, [[1, 3, 1]]);
  expect(await kinds()).toEqual(['given', 'current']);
  await database.db.query(
    `with changed as (update device set configuration = $2 where id = $1)
     update device_state set version = version + 1 where device_id = $1`,
    [device.deviceId, JSON.stringify({ ...configuration, device: { name: 'another' } })],
  );
  await send(process, device, [[2, 30, 2]]);
  expect(await kinds()).toEqual(['given', 'current', 'given']);
  const [, , given] = await inputs();
  // One of two outcomes agrees already.
  expect(given?.[3]).toMatchObject({ runtime: { puId: 7, stId: 1, v: 2 } });
});

test('an import makes it be kept again, with the newest values then', async () => {
  await installProfile(database.db, device, [countingPurpose(1)]);
  await send(process, device, [[0, 3]]);
  const row = { deviceId: device.deviceId, sId: '0x01', ts: now + 500, val: 4, long: undefined };
  await database.db.transaction(async (tx) => {
    await tx.query(
      `insert into measurement (series_id, ts, val)
       select id, ms_to_timestamp($2), 4 from series where device_id = $1`,
      [device.deviceId, row.ts],
    );
    await noteImported(tx, [row], now + 600);
  });
  await send(process, device, [[1_000, 5, 1_000]]);
  const all = await inputs();
  expect(all.map(([, , kind]) => kind)).toEqual(['given', 'current', 'given']);
  expect(all[2]?.[3]).toMatchObject({ seen: { '0x01': { ts: now + 500, vals: [4] } } });
});

test('a tick that changes something is kept, with the gaps that it knew; another one is not', async () => {
  await installProfile(database.db, device, [silence()]);
  await send(process, device, [[0, 3]]);
  clockTs = now + 30_000;
  await tick();
  gaps = [
    { fromTs: now - 900_000, toTs: now - 800_000 },
    { fromTs: now + 20_000, toTs: now + 40_000 },
  ];
  clockTs = now + 200_000;
  await tick();
  expect((await inputs()).slice(2)).toEqual([
    [200_000, 0, 'tick', { isTick: true, gaps: gaps.slice(1) }],
  ]);
});

test('a message keeps the tick that it forced', async () => {
  await installProfile(database.db, device, [silence()]);
  await send(process, device, [
    [0, 3],
    [90_000, 4, 90_000],
  ]);
  expect((await inputs()).slice(2)).toEqual([[90_000, 0, 'tick', null]]);
});

test('what the device says of profiles, states and senses is kept where it changes something', async () => {
  const pId = await installProfile(database.db, device, [countingPurpose(1)]);
  const answer = { pId, state: 'current', engine: 'service' } as const;
  const state = { puId: 7, stId: 1, ts: now + 5 };
  const senses = [{ moduleId: 'm1', senses: [{ sId: '0x01' }] }];
  await tell({ kind: 'profile-request' }, 1);
  await tell({ kind: 'profile-request' }, 2);
  await tell({ kind: 'profile-answer', answer }, 3);
  await tell({ kind: 'profile-answer', answer }, 4);
  await tell({ kind: 'state', report: state }, 5);
  await tell({ kind: 'state', report: state }, 6);
  await tell({ kind: 'configuration', configuration }, 7);
  await tell({ kind: 'configuration', configuration: { ...configuration, module: senses } }, 8);
  expect((await inputs()).slice(1)).toEqual([
    [1, 1, 'request', null],
    [3, 0, 'answer', answer],
    [5, 0, 'state', state],
    [8, 0, 'configuration', { sIds: ['0x01'] }],
  ]);
});

test('a clock that was set back is kept', async () => {
  clockTs = now + 100_000;
  await installProfile(database.db, device, [countingPurpose(1)]);
  await send(process, device, [[0, 1, 100_000]]);
  clockTs = now;
  await send(process, device, [[1, 2, 0]]);
  expect(await inputs()).toContainEqual([0, 0, 'break', { lastTs: now + 100_000 }]);
});

test('of what comes more than an hour late, the oldest time of each hour is kept', async () => {
  const hour = 3_600_000;
  await send(process, device, [
    [-hour, 1],
    [-hour - 2, 2],
    [-hour - 1, 3],
    [-3 * hour, 4, hour],
  ]);
  process.bus.publish('device', device);
  await send(process, device, [[-2 * hour, 5, hour + 1]]);
  const { rows } = await database.db.query(
    'select hour, oldest_ts from late_arrival where device_id = $1 order by hour',
    [device.deviceId],
  );
  const first = Math.floor(now / hour);
  expect(rows).toEqual([
    { hour: first, oldest_ts: now - hour - 2 },
    { hour: first + 1, oldest_ts: now - 3 * hour },
  ]);
});

test('inputs are deleted with events of their age, late hours with measurements', async () => {
  const hour = 3_600_000;
  await installProfile(database.db, device, [countingPurpose(1)]);
  await send(process, device, [[-2 * hour, 1]]);
  const days = { eventsDays: 1, measurementsDays: 2 };
  const count = async () => {
    const { rows } = await database.db.query<{ inputs: number; hours: number }>(
      `select (select count(*) from device_input where device_id = $1) as inputs,
              (select count(*) from late_arrival where device_id = $1) as hours`,
      [device.deviceId],
    );
    return rows[0];
  };
  await forgetInputs(database.db, days, now + 23 * hour);
  expect(await count()).toEqual({ inputs: 2, hours: 1 });
  await forgetInputs(database.db, days, now + 25 * hour);
  expect(await count()).toEqual({ inputs: 0, hours: 1 });
  await forgetInputs(database.db, days, now + 49 * hour);
  expect(await count()).toEqual({ inputs: 0, hours: 0 });
});
