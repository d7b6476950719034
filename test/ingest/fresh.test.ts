import { afterAll, beforeAll, expect, test } from 'vitest';
import { Purpose } from '../../src/contract/purpose.ts';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { firedOf, kindsOf, push } from './freezer.ts';
import { ingestProcess, insertDevice, installProfile, now } from './harness.ts';
import type { IngestProcess } from './harness.ts';
import { send, type Point } from './points.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

let database: TestDatabase;
let process: IngestProcess;
let device: DeviceIdentity;
beforeAll(async () => {
  database = await testDatabase();
  process = ingestProcess(database.url);
});
afterAll(async () => {
  await process.close();
  await database.drop();
});

/** An alarm on all of these senses above 8. With `gotoStId` it moves the device there. */
async function start(sIds: string[], gotoStId?: number): Promise<void> {
  const causes = sIds.map((sId) => ({ sId, thresholds: { isGt: 8 } }));
  const actions = { ...push, ...(gotoStId !== undefined && { engine: { gotoStId } }) };
  const states = [{ stId: 1, events: [{ evId: 1, causes, actions }] }, { stId: 2 }];
  device = await insertDevice(database.db);
  const purpose = Purpose.parse({ puId: 7, initStId: 1, states });
  await installProfile(database.db, device, [purpose]);
  process.signals.length = 0;
}

const values = (points: Point[], sId?: string) => send(process, device, points, sId);
const each = (count: number, point: (n: number) => Point) =>
  Array.from({ length: count }, (_, n) => point(n));
const freshness = () => firedOf(process).map(({ isFresh }) => isFresh);

test('nothing in a backlog is fresh; the first live value is, and is signalled to the alarm', async () => {
  await start(['0x01']);
  await values(each(3, (n) => [(n - 20) * minuteMs, 9]));
  expect(freshness()).toEqual([false, false, false]);
  await values(each(30, (n) => [n * 1_000, 9, n * 1_000]));
  expect(freshness()).toEqual([...Array(3).fill(false), ...Array(30).fill(true)]);
  expect(firedOf(process).filter(({ isFirst }) => isFirst)).toHaveLength(1);
  expect(kindsOf(process).filter((kind) => kind === 'heard')).toHaveLength(1);
});

test('if the backlog moved the device, no event fires any more; the first live value is signalled to its alarm', async () => {
  await start(['0x01'], 2);
  await values(each(3, (n) => [(n - 20) * minuteMs, 9]));
  await values(each(8, (n) => [n * hourMs, 9, n * hourMs]));
  expect(kindsOf(process)).toEqual(['fired', 'moved', 'heard']);
  expect(process.signals[2]).toMatchObject({ sIds: ['0x01'] });
});

test('an hourly uploader is fresh by its newest value', async () => {
  await start(['0x01']);
  await values(each(12, (n) => [n * 5 * minuteMs, 9, hourMs]));
  expect(freshness()).toEqual([...Array(9).fill(false), true, true, true]);
});

test('values of a clock 16 minutes slow are never fresh', async () => {
  await start(['0x01']);
  await values(each(20, (n) => [(n - 16) * minuteMs, 9, n * minuteMs]));
  expect(freshness()).toEqual(Array(20).fill(false));
  expect(kindsOf(process)).not.toContain('heard');
});

test('a door that opened at 08:00 and a temperature above 8 at 12:00 are fresh by the temperature', async () => {
  await start(['0x01', '0x02']);
  await values([[8 * hourMs, 9, 8 * hourMs]], '0x02');
  await values([[12 * hourMs, 9, 12 * hourMs]]);
  expect(firedOf(process)).toMatchObject([{ isFresh: true, sIds: ['0x01', '0x02'] }]);
  expect(firedOf(process)[0]?.event.cause.senses).toHaveLength(2);
});

test('three weeks of backlog that end well: nothing is fresh, and the episode is over', async () => {
  await start(['0x01']);
  const weeks = each(21 * 4, (n): Point => [(n - 21 * 4) * 6 * hourMs, n % 7 === 0 ? 9 : 5]);
  await values([...weeks, [0, 5]]);
  expect(freshness()).toEqual(Array(12).fill(false));
  const ofEpisodes = kindsOf(process).filter((kind) => kind !== 'heard');
  expect(ofEpisodes).toEqual(Array.from({ length: 12 }, () => ['fired', 'ended']).flat());
});

test('a clock set back three weeks: its values are evaluated again within 35 minutes, and are not fresh', async () => {
  await start(['0x01']);
  await values([[0, 5]]);
  const slow = each(36, (n): Point => [
    (n + 1) * minuteMs - 21 * 24 * hourMs,
    9,
    (n + 1) * minuteMs,
  ]);
  await values(slow);
  const [first] = firedOf(process);
  expect(first?.isFresh).toBe(false);
  expect((first?.arrivedTs ?? Infinity) - now).toBeLessThanOrEqual(35 * minuteMs);
  expect(firedOf(process).length).toBeGreaterThanOrEqual(36 - 17);
});
