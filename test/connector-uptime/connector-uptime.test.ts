import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Database } from '../../src/db/database.ts';
import {
  findConnectorUptime,
  forgetGaps,
  type ConnectorUptime,
  startConnectorUptime,
} from '../../src/connector-uptime/connector-uptime.ts';
import { leadersAmong } from '../../src/assembly/devices.ts';
import { newDevice } from '../events/app.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
let db: Database;
const open: ConnectorUptime[] = [];
beforeEach(async () => {
  database = await testDatabase();
  ({ db } = database);
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.close()));
  await database.drop();
});

const minute = 60_000;
const hour = 60 * minute;

/** Moves the service's time, which is the database's, by that many ms. */
const moveTime = (byMs: number) =>
  db.query(`create or replace function service_now() returns timestamptz
              language sql volatile as $$ select clock_timestamp() + interval '${byMs} ms' $$`);
const time = async () => {
  const { rows } = await db.query<{ now: number }>('select service_now() as now');
  return rows[0]?.now ?? 0;
};

async function start(clock: () => number): Promise<ConnectorUptime> {
  const leaderOf = (id: number) => (id === 9 ? null : id);
  const onError = (error: unknown) => {
    throw error;
  };
  const watch = await startConnectorUptime({ db, clock, leaderOf, onError, everyMs: 10 });
  open.push(watch);
  return watch;
}

/** A process in which these connectors listen, and which ends then. */
async function listenOnce(...connectorIds: number[]): Promise<void> {
  const watch = await startConnectorUptime({
    db,
    clock: Date.now,
    leaderOf: (id) => id,
    onError: (error) => {
      throw error;
    },
    everyMs: hour,
  });
  await Promise.all(connectorIds.map((id) => watch.add(id, () => true)));
  await watch.close();
}

const gapsOf = async (connectorId = 1) => {
  const { rows } = await db.query<{ from_at: number; to_at: number }>(
    'select from_at, to_at from listening_gap where connector_id = $1 order by from_at',
    [connectorId],
  );
  return rows;
};

test('a connector that reports every few seconds has no gap; one that was silent longer has one', async () => {
  const sinceTs = await time();
  await listenOnce(1, 2);
  await moveTime(14_000);
  await listenOnce(1);
  expect(await gapsOf()).toEqual([]);
  await moveTime(30 * minute);
  await listenOnce(1, 2);
  const [gap, ...others] = await gapsOf();
  expect(others).toEqual([]);
  expect((gap?.from_at ?? 0) - sinceTs).toBeGreaterThanOrEqual(14_000);
  expect((gap?.to_at ?? 0) - (gap?.from_at ?? 0)).toBeGreaterThan(29 * minute);
  expect(await gapsOf(2)).toHaveLength(1);
});

test('processes with one name share a row: while one of them listens, there is no gap', async () => {
  await listenOnce(1);
  await Promise.all(Array.from({ length: 8 }, () => listenOnce(1)));
  const { rows } = await db.query('select connector_id from listening');
  expect(rows).toEqual([{ connector_id: 1 }]);
  expect(await gapsOf()).toEqual([]);
});

test('a clock that is set forward makes a gap, one that is set back does not', async () => {
  const now = await time();
  const watch = await start(() => now);
  await watch.add(1, () => true);
  expect(watch.of(1)).toEqual({ gaps: [] });
  await moveTime(hour);
  await expect.poll(async () => (await gapsOf()).length).toBe(1);
  await expect.poll(() => watch.of(1)?.gaps.length).toBe(1);
  expect(watch.of(1)?.gaps[0]?.toTs).toBeGreaterThan(now + hour - minute);
  await moveTime(0);
  await listenOnce(1);
  await listenOnce(1);
  // The gap ends when the clock was right again, and nothing lies in the future.
  const [gap, ...others] = await gapsOf();
  expect(others).toEqual([]);
  expect(gap?.to_at).toBeLessThan(now + minute);
  const ends = () => (watch.of(1)?.gaps ?? []).map(({ toTs }) => (toTs ?? Infinity) < now + minute);
  await expect.poll(ends).toEqual([true]);
  // A process that lived through this learns of a later gap too.
  await db.query(`update listening set heard_at = heard_at - interval '10 minutes'`);
  await expect.poll(() => watch.of(1)?.gaps.length).toBe(2);
});

test('a leap of the time is a lasting gap until a process reports again that it listens', async () => {
  let now = await time();
  const watch = await start(() => now);
  let isListening = true;
  await watch.add(1, () => isListening);
  isListening = false;
  now += hour;
  const [gap] = watch.of(1)?.gaps ?? [];
  expect(gap?.toTs).toBeNull();
  expect(now - (gap?.fromTs ?? 0)).toBeGreaterThan(hour - minute);
});

test('a connector that never listened has a gap since ever; one that is not configured has no answer', async () => {
  const watch = await start(() => 0);
  expect(watch.of(3)).toEqual({ gaps: [{ fromTs: 0, toTs: null }] });
  expect(watch.of(9)).toBeUndefined();
});

test("whether another process's connector listened is certain once it reports again, or was silent for too long", async () => {
  let now = await time();
  const watch = await start(() => now);
  await listenOnce(1);
  await expect.poll(() => watch.of(1)?.gaps).toEqual([]);
  const askedTs = now + 8_000;
  now = askedTs + 1_000;
  expect(watch.isKnownAt(1, askedTs)).toBe(false);
  now += 10_000;
  expect(watch.isKnownAt(1, askedTs)).toBe(true);
  now -= 10_000;
  await moveTime(9_000);
  await listenOnce(1);
  await expect.poll(() => watch.isKnownAt(1, askedTs)).toBe(true);
  expect(watch.isKnownAt(9, askedTs)).toBe(true);
});

test('a report is written while the connector listens, and seen in all processes', async () => {
  const now = await time();
  const [one, other] = [await start(() => now), await start(() => now)];
  let isListening = false;
  await one.add(1, () => isListening);
  expect(one.isHere(1)).toBe(false);
  expect(other.of(1)?.gaps).toHaveLength(1);
  isListening = true;
  await expect.poll(() => other.of(1)).toEqual({ gaps: [] });
  expect([one.isHere(1), other.isHere(1)]).toEqual([true, false]);
});

test('a report that could not be written is written a moment later, not at the next interval', async () => {
  const errors: unknown[] = [];
  let isAway = false;
  const shaky = Object.create(db) as Database;
  shaky.query = (async (...given: [string, unknown[]?]) => {
    if (isAway) throw new Error('away');
    return db.query(...given);
  }) as Database['query'];
  const watch = await startConnectorUptime({
    db: shaky,
    clock: () => Date.now(),
    leaderOf: (id) => id,
    onError: (error) => void errors.push(error),
    everyMs: hour,
  });
  open.push(watch);
  isAway = true;
  await watch.add(1, () => true);
  expect(errors).toHaveLength(1);
  isAway = false;
  const heard = () => db.query('select from listening where connector_id = 1');
  await expect.poll(async () => (await heard()).rows.length).toBe(1);
});

test('gaps are kept for 31 days', async () => {
  await listenOnce(1);
  await moveTime(hour);
  await listenOnce(1);
  await moveTime(31 * 24 * hour);
  await forgetGaps(db, await time());
  expect(await gapsOf()).toHaveLength(1);
  await moveTime(31 * 24 * hour + 2 * hour);
  await forgetGaps(db, await time());
  expect(await gapsOf()).toHaveLength(0);
});

test("bridges that share a broker's messages count as one, and so do those that stand by", () => {
  const bridge = (id: number, shareName: string | null, url = 'mqtt://broker') => ({
    kind: 'bridge' as const,
    id,
    name: `bridge-${id}`,
    protocol: 'mqtt' as const,
    host: null,
    port: null,
    broker: { url, shareName },
  });
  const mqtt = (id: number) => ({ ...bridge(id, null), kind: 'mqtt' as const });
  const connectors = [
    mqtt(1),
    bridge(2, 'sensorium'),
    bridge(3, 'sensorium'),
    bridge(4, null),
    bridge(5, null),
    bridge(6, 'sensorium', 'mqtt://other'),
    mqtt(7),
  ];
  expect([...leadersAmong(connectors as Parameters<typeof leadersAmong>[0])]).toEqual([
    [1, 1],
    [2, 2],
    [3, 2],
    [4, 4],
    [5, 4],
    [6, 6],
    [7, 7],
  ]);
});

test('for one device, only gaps of its connector are read, and none older than requested', async () => {
  const nowTs = await time();
  const { deviceId } = await newDevice(db);
  const gap = (connectorId: number, fromMs: number) =>
    db.query(
      `insert into listening_gap (connector_id, from_at, to_at)
       values ($1, ms_to_timestamp($2), ms_to_timestamp($2 + 60000))`,
      [connectorId, nowTs + fromMs],
    );
  await listenOnce(1, 2);
  await gap(1, -10 * hour);
  await gap(1, -2 * hour);
  await gap(2, -hour);
  const find = async (sinceMs: number) => {
    const range = { sinceTs: nowTs + sinceMs, nowTs };
    const found = await findConnectorUptime(db, deviceId, range, (id) => id);
    return found?.gaps.map(({ fromTs }) => fromTs - nowTs);
  };
  expect(await find(-3 * hour)).toEqual([-2 * hour]);
  expect(await find(-11 * hour)).toEqual([-10 * hour, -2 * hour]);
  expect(await find(-hour)).toEqual([]);
});
