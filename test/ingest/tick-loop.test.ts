import pino from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Delivery, DeviceIdentity } from '../../src/contract/uplink.ts';
import type { Database } from '../../src/db/database.ts';
import { DomainError } from '../../src/errors.ts';
import { startTicks } from '../../src/ingest/ticks.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { insertDevice, insertDevices, now } from './harness.ts';

let database: TestDatabase;
let db: Database;
let ticks: ReturnType<typeof startTicks> | undefined;
let brought: DeviceIdentity[];
let outcomes: string[];
let behind: number[];
beforeEach(async () => {
  database = await testDatabase();
  ({ db } = database);
  [brought, outcomes, behind] = [[], [], []];
});
afterEach(async () => {
  await ticks?.close();
  await database.drop();
});

type TicksDeps = Parameters<typeof startTicks>[0];
type TickPace = Parameters<typeof startTicks>[1];
const pace: TickPace = { lookMs: 5, portionMs: 5 };

/** Stores each tick at once: its row goes. */
async function store(device: DeviceIdentity, { stored }: Delivery): Promise<void> {
  brought.push(device);
  await db.query('delete from device_due where device_id = $1', [device.deviceId]);
  stored();
}

function start(deps: Partial<TicksDeps> = {}, changed: TickPace = {}): void {
  ticks = startTicks(
    {
      db,
      clock: () => now,
      monotonicClock: () => performance.now(),
      tick: (device, delivery) => void store(device, delivery),
      isHere: () => false,
      isHeardOf: () => true,
      isHeld: () => false,
      log: pino({ level: 'silent' }),
      observe: {
        done: (outcome) => void outcomes.push(outcome),
        behind: (seconds) => void behind.push(seconds),
      },
      ...deps,
    },
    { ...pace, ...changed },
  );
}

const fallDue = (devices: DeviceIdentity[], ts: number) =>
  db.query(
    `insert into device_due (device_id, account_id, due_at)
     select id, $2, ms_to_timestamp($3) from unnest($1::bigint[]) as id`,
    [devices.map(({ deviceId }) => deviceId), devices[0]?.accountId, ts],
  );

const idsOf = (devices: DeviceIdentity[]) => devices.map(({ deviceId }) => deviceId);

/** Waits until this many looks have followed. */
async function looks(count: number): Promise<void> {
  const from = behind.length;
  await expect.poll(() => behind.length).toBeGreaterThanOrEqual(from + count);
}

test('what is due is evaluated in order; what is not due yet is not', async () => {
  const [first, second, later] = await insertDevices(db, 3);
  await fallDue([second as DeviceIdentity], now - 6_000);
  await fallDue([first as DeviceIdentity], now - 7_000);
  await fallDue([later as DeviceIdentity], now + 1);
  start();
  await expect.poll(() => outcomes).toEqual(['stored', 'stored']);
  await looks(3);
  expect(idsOf(brought)).toEqual(idsOf([first, second] as DeviceIdentity[]));
  expect(Math.max(...behind)).toBe(7);
  expect(behind.at(-1)).toBe(0);
});

test('the process that has the device takes it at once, another one five seconds later', async () => {
  const [here, elsewhere] = (await insertDevices(db, 2)) as [DeviceIdentity, DeviceIdentity];
  await fallDue([here, elsewhere], now);
  let time = now;
  start({ clock: () => time, isHere: ({ deviceId }) => deviceId === here.deviceId });
  await expect.poll(() => brought.length).toBe(1);
  time = now + 4_999;
  await looks(3);
  expect(idsOf(brought)).toEqual([here.deviceId]);
  time = now + 5_000;
  await expect.poll(() => idsOf(brought)).toEqual(idsOf([here, elsewhere]));
});

test('whether another process has the device is known from its presence', async () => {
  const [connected, away, unknown] = (await insertDevices(db, 3)) as [
    DeviceIdentity,
    DeviceIdentity,
    DeviceIdentity,
  ];
  await db.query('insert into presence (device_id, connected) values ($1, true), ($2, false)', [
    connected.deviceId,
    away.deviceId,
  ]);
  await fallDue([connected, away, unknown], now);
  start({ isHere: ({ isConnected }) => !isConnected });
  await expect.poll(() => brought.length).toBe(2);
  await looks(3);
  expect(idsOf(brought).toSorted()).toEqual(idsOf([away, unknown]));
});

test('an account with much due hides nothing of others, and one that must wait is left out', async () => {
  const many = await insertDevices(db, 50);
  const held = await insertDevices(db, 50);
  const one = await insertDevice(db);
  await fallDue(many, now - 60_000);
  await fallDue(held, now - 50_000);
  await fallDue([one], now - 10_000);
  const heldId = held[0]?.accountId;
  start(
    { isHeld: (accountId) => accountId === heldId },
    { atOnce: 20, ofAccountAtOnce: 5, maxUnderWay: 2 },
  );
  await expect.poll(() => brought.length).toBe(51);
  const place = idsOf(brought).indexOf(one.deviceId);
  expect(place).toBeLessThan(20);
  await looks(3);
  expect(brought.some(({ accountId }) => accountId === heldId)).toBe(false);
});

test('a tick of a device that perhaps nobody listened to waits until that is known', async () => {
  const [known, unknown] = (await insertDevices(db, 2)) as [DeviceIdentity, DeviceIdentity];
  await fallDue([known, unknown], now - 6_000);
  let isKnown = false;
  start({ isHeardOf: ({ deviceId }) => isKnown || deviceId === known.deviceId });
  await expect.poll(() => brought.length).toBe(1);
  await looks(3);
  expect(idsOf(brought)).toEqual([known.deviceId]);
  isKnown = true;
  await expect.poll(() => idsOf(brought)).toEqual(idsOf([known, unknown]));
});

test('no more are under way than allowed, and each once', async () => {
  const devices = await insertDevices(db, 30);
  await fallDue(devices, now - 60_000);
  const waiting: Delivery[] = [];
  start(
    {
      tick(device, delivery) {
        brought.push(device);
        waiting.push(delivery);
      },
    },
    { maxUnderWay: 4 },
  );
  await expect.poll(() => waiting.length).toBe(4);
  await looks(3);
  expect(waiting.length).toBe(4);
  for (let n = 0; n < 26; n += 1) {
    waiting[n]?.stored();
    await expect.poll(() => waiting.length).toBe(n + 5);
  }
  expect(new Set(idsOf(brought)).size).toBe(30);
});

test('a tick that cannot be stored is postponed by a minute, then two, up to an hour', async () => {
  const [refused, other] = (await insertDevices(db, 2)) as [DeviceIdentity, DeviceIdentity];
  await fallDue([refused, other], now - 60_000);
  let time = now;
  const triedAt: number[] = [];
  start({
    clock: () => time,
    tick(device, delivery) {
      if (device.deviceId !== refused.deviceId) return void store(device, delivery);
      triedAt.push(time - now);
      delivery.failed(new Error('no'));
    },
  });
  await expect.poll(() => outcomes.toSorted()).toEqual(['put-off', 'stored']);
  const retryAt = async () => {
    const { rows } = await db.query<{ retry_at: number | null; failures: number }>(
      'select retry_at, failures from device_due',
    );
    return rows[0];
  };
  const minute = 60_000;
  let delay = minute;
  for (let failures = 1; failures <= 8; failures += 1) {
    await expect.poll(retryAt).toEqual({ retry_at: time + delay, failures });
    time += delay - 1;
    await looks(3);
    expect(triedAt.length).toBe(failures);
    time += 5_001;
    delay = Math.min(delay * 2, 60 * minute);
    await expect.poll(() => triedAt.length).toBe(failures + 1);
  }
});

test('a tick that another process has, or that the database cannot store for now, is tried again', async () => {
  const [left, away] = (await insertDevices(db, 2)) as [DeviceIdentity, DeviceIdentity];
  await fallDue([left, away], now - 60_000);
  const tried = new Map<number, number>();
  start({
    tick(device, delivery) {
      const count = (tried.get(device.deviceId) ?? 0) + 1;
      tried.set(device.deviceId, count);
      const code = device.deviceId === left.deviceId ? 'device-gone' : 'unavailable';
      if (count < 3) delivery.failed(new DomainError(code, 'for now'));
      else void store(device, delivery);
    },
  });
  await expect.poll(() => idsOf(brought).toSorted()).toEqual(idsOf([left, away]).toSorted());
  expect(outcomes.filter((outcome) => outcome === 'left')).toHaveLength(4);
  expect(outcomes.filter((outcome) => outcome === 'put-off')).toHaveLength(0);
});
