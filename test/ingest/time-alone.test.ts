import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Purpose } from '../../src/contract/purpose.ts';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { firedOf, kindsOf, push } from './freezer.ts';
import { forever, ingestProcess, insertDevice, installProfile, measured, now } from './harness.ts';
import { recordedEvents, uplink, type IngestProcess } from './harness.ts';
import { send, type Point } from './points.ts';

const minuteMs = 60_000;

let database: TestDatabase;
let process: IngestProcess;
let another: IngestProcess;
let device: DeviceIdentity;
let pId: string;
beforeAll(async () => {
  database = await testDatabase();
  process = ingestProcess(database.url);
  another = ingestProcess(database.url);
});
afterAll(async () => {
  await Promise.all([process.close(), another.close()]);
  await database.drop();
});

/** A purpose with an alarm on these causes. With `gotoStId` it moves the device to a state without alarms. */
function alarmOn(causes: object[], gotoStId?: number): Purpose {
  const actions = { ...push, ...(gotoStId !== undefined && { engine: { gotoStId } }) };
  const states = [{ stId: 1, events: [{ evId: 1, eventLog: true, causes, actions }] }, { stId: 2 }];
  return Purpose.parse({ puId: 7, initStId: 1, states });
}

const warm = { sId: '0x01', threshold: { forMs: 10 * minuteMs }, thresholds: { isGt: 8 } };
const silent = { sId: '0x01', threshold: { noneForMs: 30 * minuteMs } };

async function start(causes: object[], gotoStId?: number): Promise<void> {
  device = await insertDevice(database.db);
  pId = await installProfile(database.db, device, [alarmOn(causes, gotoStId)]);
  // As if it had been installed then.
  await database.db.query('update profile set created_at = $2 where id = $1', [pId, new Date(now)]);
  for (const one of [process, another]) one.signals.length = 0;
}

const values = (...points: Point[]) => send(process, device, points);

/** A tick that comes when everything is due. */
const tick = ({ ingest }: IngestProcess = process): Promise<void> =>
  new Promise((stored, failed) => ingest.tick(device, { isWithdrawn: false, stored, failed }));

/** Firings, with what was measured and when they arrived, in minutes. */
const firings = (of: IngestProcess = process) =>
  firedOf(of).map(({ event, arrivedTs }) => ({
    minute: (event.ts - now) / minuteMs,
    arrived: Math.floor((arrivedTs - now) / minuteMs),
    senses: event.cause.senses.map(({ val }) => val),
  }));

describe('a cause with `forMs`', () => {
  test('fires by a tick if nothing else arrives', async () => {
    await start([warm]);
    await values([0, 9]);
    expect(firings()).toEqual([]);
    await tick();
    expect(firings()).toEqual([{ minute: 10, arrived: 10, senses: [9] }]);
    expect(firedOf(process)).toMatchObject([{ isFresh: true, isFirst: true }]);
    expect(firedOf(process)[0]?.event.why).toMatchObject([{ heldMs: 10 * minuteMs, sinceTs: now }]);
  });

  test('fires just before the first later message, whatever that contains', async () => {
    await start([warm]);
    await values([0, 9]);
    const report = { puId: 7, stId: 1, ts: now + 11 * minuteMs };
    const message = uplink({ kind: 'state', report }, now + 11 * minuteMs);
    await process.ingest.ingest(device, message, forever);
    expect(firings()).toEqual([{ minute: 10, arrived: 10, senses: [9] }]);
  });

  test('fires between two messages of one transaction', async () => {
    await start([warm]);
    const at = (minute: number, val: number) => {
      const message = measured('0x01', [now + minute * minuteMs, val]);
      return { ...message, arrivedTs: now + minute * minuteMs };
    };
    const messages = [at(0, 9), at(11, 1), at(12, 9), at(13, 1), at(30, 1)];
    await Promise.all(messages.map((message) => process.ingest.ingest(device, message, forever)));
    expect(firings()).toEqual([{ minute: 10, arrived: 10, senses: [9] }]);
    expect(kindsOf(process)).toEqual(['fired', 'ended']);
  });

  test('fires in an upload if a later value shows that it lasted, and not if it did not', async () => {
    await start([warm]);
    const upload = (...points: [number, number][]) => ({
      ...measured('0x01', ...points.map(([m, val]): [number, number] => [now + m * minuteMs, val])),
      arrivedTs: now + 60 * minuteMs,
    });
    await process.ingest.ingest(device, upload([0, 9], [5, 1], [20, 9], [31, 9], [32, 1]), forever);
    expect(firings()).toEqual([{ minute: 30, arrived: 60, senses: [9] }]);
  });
});

describe('a cause with `noneForMs`', () => {
  test('fires again after the sense was heard, whatever `measurement.count` is', async () => {
    await start([{ ...silent, measurement: { count: 3 } }]);
    await values([0, 5]);
    await tick();
    await values([40 * minuteMs, 5, 40 * minuteMs]);
    await tick();
    expect(kindsOf(process)).toEqual(['fired', 'ended', 'fired']);
    expect(firedOf(process).map(({ isFirst }) => isFirst)).toEqual([true, true]);
  });

  test('fires by a tick once the sense was silent for that long, and reports its newest value', async () => {
    await start([silent]);
    await values([0, 5], [minuteMs, 6, minuteMs]);
    await tick();
    expect(firings()).toEqual([{ minute: 31, arrived: 31, senses: [6] }]);
    expect(firedOf(process)[0]?.event.why).toMatchObject([{ silentMs: 30 * minuteMs }]);
    // Once a silence.
    await tick();
    expect(kindsOf(process)).toEqual(['fired']);
    await values([40 * minuteMs, 5, 40 * minuteMs]);
    await tick();
    expect(kindsOf(process)).toEqual(['fired', 'ended', 'fired']);
  });

  test.each(['the same process', 'another one'])(
    'reports the last of more than sixteen values of one millisecond, by %s',
    async (who) => {
      await start([silent]);
      await values(...Array.from({ length: 18 }, (_, n): Point => [0, n]));
      const by = who === 'another one' ? another : process;
      await tick(by);
      // So many are not remembered: what comes after a state that was read again may count a millisecond later.
      const minute: unknown = expect.closeTo(30, 3);
      expect(firings(by)).toEqual([{ minute, arrived: expect.closeTo(30, 3), senses: [17] }]);
    },
  );

  test('at whichever process, and reports a value that was ahead', async () => {
    await start([silent]);
    await values([0, 5], [4 * minuteMs, 6, minuteMs]);
    await tick(another);
    expect(firings(another)).toEqual([{ minute: 31, arrived: 31, senses: [6] }]);
  });

  test('is not ended by values that came too late, or are stored already', async () => {
    await start([silent]);
    await values([0, 5], [-1, 6, 20 * minuteMs], [0, 5, 25 * minuteMs]);
    await tick();
    expect(firings()).toEqual([{ minute: 30, arrived: 30, senses: [5] }]);
  });

  test('fires with other causes when the last of them is completed', async () => {
    await start([silent, { sId: '0x02', thresholds: { isGt: 20 } }]);
    await values([0, 5]);
    await tick();
    expect(firings()).toEqual([]);
    await send(process, device, [[60 * minuteMs, 21, 60 * minuteMs]], '0x02');
    expect(firings()).toEqual([{ minute: 60, arrived: 60, senses: [5, 21] }]);
  });

  test('moves the device, and alarms are signalled', async () => {
    await start([silent], 2);
    await values([0, 5]);
    await tick();
    expect(process.signals).toMatchObject([
      { kind: 'fired', movedTo: { puId: 7, stId: 2 }, arrivedTs: now + 30 * minuteMs },
      { kind: 'moved', isReport: false, arrivedTs: now + 30 * minuteMs },
    ]);
    const events = await recordedEvents(database.db, device);
    expect(events.map(({ type }) => type)).toEqual(['device', 'sense', 'device']);
  });
});

describe('a device that never sends', () => {
  const fallDue = () =>
    database.db.query(
      `insert into device_due (device_id, account_id, due_at) values ($1, $2, ms_to_timestamp($3))`,
      [device.deviceId, device.accountId, now],
    );

  test('has its pending profile made current by its tick, and fires without a value', async () => {
    await start([silent]);
    await fallDue();
    await tick();
    expect(firings()).toEqual([{ minute: 30, arrived: 30, senses: [] }]);
  });

  test('has it fire before its first message, if that comes later', async () => {
    await start([silent]);
    await values([40 * minuteMs, 5, 40 * minuteMs]);
    expect(firings()).toEqual([{ minute: 30, arrived: 30, senses: [] }]);
    expect(kindsOf(process)).toEqual(['fired', 'ended']);
  });

  test('is counted from the installation, even if another sense of it was heard before', async () => {
    await start([silent]);
    await send(process, device, [[10 * minuteMs, 5, 10 * minuteMs]], '0x02');
    await tick();
    expect(firings()).toEqual([{ minute: 30, arrived: 30, senses: [] }]);
  });
});

describe('if the device evaluates itself', () => {
  const evaluateItself = () => {
    const answer = { pId, state: 'current' as const, engine: 'device' as const };
    const message = uplink({ kind: 'profile-answer', answer });
    return process.ingest.ingest(device, message, forever);
  };

  test('the service watches its silences, which move nothing', async () => {
    await start([silent], 2);
    await evaluateItself();
    await values([minuteMs, 5, minuteMs]);
    await tick();
    expect(firings()).toEqual([{ minute: 31, arrived: 31, senses: [5] }]);
    expect(kindsOf(process)).toEqual(['fired']);
  });

  test('if it reports another state, those of that one', async () => {
    await start([silent]);
    await evaluateItself();
    const report = { puId: 7, stId: 2, ts: now + 1 };
    await process.ingest.ingest(device, uplink({ kind: 'state', report }), forever);
    await tick();
    expect(firings()).toEqual([]);
  });

  test('and nothing else', async () => {
    await start([warm]);
    await evaluateItself();
    await values([0, 9], [60 * minuteMs, 9, 60 * minuteMs]);
    expect(kindsOf(process)).toEqual([]);
  });
});
