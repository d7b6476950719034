import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Purpose } from '../../src/contract/purpose.ts';
import type { DeviceIdentity, UplinkContent } from '../../src/contract/uplink.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { forever, ingestProcess, insertDevice, installProfile } from './harness.ts';
import { measured, now, recordedEvents, uplink, type IngestProcess } from './harness.ts';
import { firedOf, freezer, kindsOf, push, warm } from './freezer.ts';
import { send, type Point } from './points.ts';

const minuteMs = 60_000;

let database: TestDatabase;
let process: IngestProcess;
let device: DeviceIdentity;
let pId: string;
async function installAnew(purpose: Purpose): Promise<void> {
  device = await insertDevice(database.db);
  pId = await installProfile(database.db, device, [purpose]);
}

beforeAll(async () => {
  database = await testDatabase();
  process = ingestProcess(database.url);
});
beforeEach(async () => {
  await installAnew(freezer);
  process.signals.length = 0;
});
afterAll(async () => {
  await process.close();
  await database.drop();
});

const tell = (content: UplinkContent, arrived = 0) =>
  process.ingest.ingest(device, uplink(content, now + arrived), forever);
const values = (...points: Point[]) => send(process, device, points);
const kinds = () => kindsOf(process);

describe('a firing', () => {
  test('names its event and device, and its place in the episode', async () => {
    await values([0, 9], [1, 9.5, 5]);
    const of = { puId: 7, stId: 1, evId: 1 };
    const common = {
      kind: 'fired',
      device,
      of,
      pId,
      tells: 'alarm',
      name: 'Too warm',
      stateName: 'Closed',
      purposeName: 'Freezer',
      actions: push,
      sIds: ['0x01'],
      from: { puId: 7, stId: 1 },
      movedTo: null,
      isFresh: true,
      isRecorded: false,
    };
    expect(process.signals).toMatchObject([
      { ...common, isFirst: true, arrivedTs: now, event: { ts: now, arrivedTs: now } },
      { ...common, isFirst: false, arrivedTs: now + 5, event: { ts: now + 1, arrivedTs: now + 5 } },
    ]);
  });

  test('is fresh if the measurement that completed it is at most 15 minutes old', async () => {
    await values([-15 * minuteMs - 1, 9], [-15 * minuteMs, 9], [0, 9]);
    expect(firedOf(process).map(({ isFresh }) => isFresh)).toEqual([false, true, true]);
  });

  test('names the state to which a later event of the same measurement moved the device', async () => {
    await values([0, 25]);
    const [from, to] = [1, 2].map((stId) => ({ puId: 7, stId }));
    expect(process.signals).toMatchObject([
      { kind: 'fired', from, movedTo: to },
      { kind: 'moved', from, to, isReport: false },
    ]);
  });

  test('is followed by the end of its episode, which comes before the next firing', async () => {
    await values([0, 9], [1, 5], [2, 9]);
    expect(kinds()).toEqual(['fired', 'ended', 'fired']);
    expect(process.signals[1]).toMatchObject({ of: [{ puId: 7, stId: 1, evId: 1 }] });
    expect(firedOf(process).map(({ isFirst }) => isFirst)).toEqual([true, true]);
  });

  test('that notifies nobody is not signalled, nor is a move without alarms', async () => {
    const log = Purpose.parse({
      ...freezer,
      states: [
        {
          stId: 1,
          events: [{ ...warm, eventLog: true, actions: { engine: { gotoStId: 2 } } }],
        },
        { stId: 2 },
      ],
    });
    await installAnew(log);
    await values([0, 9], [1, 9]);
    await tell({ kind: 'state', report: { puId: 7, stId: 1 } }, 2);
    expect(await recordedEvents(database.db, device)).toHaveLength(4);
    expect(kinds()).toEqual([]);
  });
});

describe('alarms are decided by one transaction of a device after the other', () => {
  test('each transaction with signals raises its version', async () => {
    const versionOf = async () => {
      const { rows } = await database.db.query<{ version: number }>(
        'select version from device_state where device_id = $1',
        [device.deviceId],
      );
      return rows[0]?.version ?? 0;
    };
    await tell({ kind: 'profile-answer', answer: { pId, state: 'current', engine: 'device' } });
    const before = await versionOf();
    const engine = { pId, puId: 7, stId: 1, evId: 1, ts: now };
    const report = { index: null, value: { cause: { engine, senses: [] } } };
    await tell({ kind: 'events', items: [report] });
    expect(await versionOf()).toBe(before + 1);
  });

  test('what they decide about an event is recorded with it', async () => {
    const recorded = Purpose.parse({
      ...freezer,
      states: [{ stId: 1, events: [{ ...warm, eventLog: true, actions: push }] }],
    });
    await installAnew(recorded);
    await values([0, 9], [1, 9]);
    const events = await recordedEvents(database.db, device);
    expect(events.flatMap(({ body }) => ('senses' in body.cause ? [body] : []))).toMatchObject([
      expect.not.objectContaining({ notified: false }),
      { notified: false },
    ]);
  });
});

test('several messages in one transaction are signalled in order', async () => {
  const sent = [9, 1, 25].map((val, n) => measured('0x01', [now + n, val]));
  const messages = [...sent, uplink({ kind: 'state', report: { puId: 7, stId: 1, ts: now + 9 } })];
  await Promise.all(messages.map((message) => process.ingest.ingest(device, message, forever)));
  expect(kinds()).toEqual(['fired', 'ended', 'fired', 'moved', 'moved']);
});
