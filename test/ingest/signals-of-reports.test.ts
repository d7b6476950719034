import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Purpose } from '../../src/contract/purpose.ts';
import type { DeviceIdentity, UplinkContent } from '../../src/contract/uplink.ts';
import { Device as AlarmsOfDevice } from '../alarms/fixtures.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { configuration, forever, ingestProcess, insertDevice, installProfile } from './harness.ts';
import { now, recordedEvents, uplink, type IngestProcess } from './harness.ts';
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

describe('a reported state', () => {
  test('that is another one is a move; the one that the device is in is nothing', async () => {
    await values([0, 9]);
    await tell({ kind: 'state', report: { puId: 7, stId: 1, ts: now + 1 } });
    await tell({ kind: 'state', report: { puId: 7, stId: 2, ts: now + 2 } });
    await tell({ kind: 'state', report: { puId: 7, stId: 2, ts: now + 3 } });
    const [from, to] = [1, 2].map((stId) => ({ puId: 7, stId }));
    expect(process.signals.slice(1)).toMatchObject([{ kind: 'moved', from, to, isReport: true }]);
  });

  test('repeated each minute leaves windows and episodes as they are', async () => {
    const five = Purpose.parse({
      ...freezer,
      states: [
        {
          stId: 1,
          events: [
            {
              ...warm,
              causes: [{ sId: '0x01', threshold: { count: 5 }, thresholds: { isGt: 8 } }],
              actions: push,
            },
          ],
        },
      ],
    });
    await installAnew(five);
    for (let minute = 0; minute < 60; minute += 1) {
      const at = minute * minuteMs;
      await values([at, 9, at]);
      await tell({ kind: 'state', report: { puId: 7, stId: 1, ts: now + at } }, at);
    }
    expect(
      firedOf(process).map(({ isFirst, event }) => [isFirst, (event.ts - now) / minuteMs]),
    ).toEqual(Array.from({ length: 12 }, (_, n) => [n === 0, 4 + 5 * n]));
  });
});

describe('an event that the device reports', () => {
  const report = (ts: number) => {
    const engine = { pId, puId: 7, stId: 1, evId: 1, ts };
    const value = { cause: { engine, senses: [{ sId: '0x01', val: 9, ts }] } };
    return tell({ kind: 'events', items: [{ index: null, value }] });
  };

  test('is a firing with a key, each time the first of its episode', async () => {
    await tell({ kind: 'profile-answer', answer: { pId, state: 'current', engine: 'device' } });
    await report(now);
    await report(now + 1);
    await report(now + 1);
    await report(now - 16 * minuteMs);
    const reportKey = `${pId}/7/1/1`;
    expect(process.signals).toMatchObject([
      { kind: 'fired', reportKey, isFirst: true, isFresh: true, event: { arrivedTs: now } },
      { kind: 'fired', reportKey, isFirst: true, isFresh: true },
      { kind: 'fired', reportKey, isFirst: true, isFresh: true },
      { kind: 'fired', reportKey, isFirst: true, isFresh: false },
    ]);
    expect(process.rings.filter((ring) => ring.device.deviceId === device.deviceId)).toHaveLength(
      2,
    );
  });

  test('is only recorded if the service evaluates, because that finds it itself', async () => {
    await tell({ kind: 'profile-answer', answer: { pId, state: 'current', engine: 'service' } });
    await report(now);
    expect(kinds()).toEqual([]);
    expect(await recordedEvents(database.db, device)).toHaveLength(2);
  });
});

describe('a notice that leads back, reported by the device', () => {
  const back = { evId: 1, causes: warm.causes, actions: { ...push, engine: { gotoStId: 1 } } };
  const states = [
    { stId: 1, events: [] },
    { stId: 2, events: [back] },
    { stId: 3, isGlobal: true, events: [back] },
  ];
  const event = (stId: number, at: number) => {
    const engine = { pId, puId: 7, stId, evId: 1, ts: now + at };
    const value = { cause: { engine, senses: [] } };
    return tell({ kind: 'events', items: [{ index: null, value }] }, at);
  };
  const state = (stId: number, at: number) =>
    tell({ kind: 'state', report: { puId: 7, stId, ts: now + at } }, at);
  const told = () => firedOf(process).flatMap((signal) => new AlarmsOfDevice().take(signal));
  beforeEach(async () => {
    await installAnew(Purpose.parse({ puId: 7, initStId: 1, states }));
    await tell({ kind: 'profile-answer', answer: { pId, state: 'current', engine: 'device' } });
    await state(2, 1);
  });

  test.each([
    ['an ordinary state', 2],
    ['a global state', 3],
  ])('of %s, is signalled, whichever report comes first', async (_, stId) => {
    await event(stId, 10);
    await state(1, 10);
    await state(2, 20);
    await state(1, 31);
    await event(stId, 30);
    expect(told()).toEqual(['told', 'told']);
  });

  test('is not signalled if the device was there already', async () => {
    await state(1, 10);
    await event(3, 20);
    await state(1, 20);
    expect(told()).toEqual(['same-episode']);
  });
});

describe('a sense is heard, if an alarm waits for it', () => {
  test('with the first fresh value after a firing that was too old', async () => {
    await values([-20 * minuteMs, 9], [-19 * minuteMs, 9], [0, 9, 1], [1, 9, 2]);
    expect(kinds()).toEqual(['fired', 'fired', 'fired', 'heard', 'fired']);
    expect(process.signals[3]).toMatchObject({ sIds: ['0x01'], arrivedTs: now + 1 });
  });

  test('in any state, and after the firing that the value ends', async () => {
    await values([-20 * minuteMs, 25], [0, 9]);
    expect(kinds()).toEqual(['fired', 'moved', 'heard']);
    process.signals.length = 0;
    await tell({ kind: 'state', report: { puId: 7, stId: 1, ts: now + 1 } }, 1);
    await values([-10, 9, 20 * minuteMs], [20 * minuteMs, 1, 20 * minuteMs]);
    expect(kinds()).toEqual(['moved', 'late']);
  });

  test('even if another process stored the firing', async () => {
    const waiting = new Map([[device.deviceId, new Set(['0x01', '0x02'])]]);
    const another = ingestProcess(database.url, { listWaitingSenses: async () => waiting });
    await send(another, device, [
      [-20 * minuteMs, 1],
      [0, 1],
      [1, 1],
    ]);
    expect(another.signals).toMatchObject([{ kind: 'heard', sIds: ['0x01'] }]);
    await another.close();
  });

  test('a value that came too late signals only that', async () => {
    await values([-20 * minuteMs, 9], [5 * minuteMs, 30, 5 * minuteMs]);
    process.signals.length = 0;
    const waiting = new Map([[device.deviceId, new Set(['0x01'])]]);
    const another = ingestProcess(database.url, { listWaitingSenses: async () => waiting });
    await send(another, device, [[4 * minuteMs, 9, 5 * minuteMs]]);
    expect(kindsOf(another)).toEqual(['late']);
    await another.close();
  });
});

describe('alarms end, with a signal, if', () => {
  const ends = [{ kind: 'profile', arrivedTs: now + 1 }];
  beforeEach(async () => {
    await tell({ kind: 'profile-answer', answer: { pId, state: 'current' } });
    expect(kinds()).toEqual([]);
  });

  test('another profile becomes current', async () => {
    const next = await installProfile(database.db, device, [freezer]);
    await tell({ kind: 'profile-answer', answer: { pId: next, state: 'current' } }, 1);
    expect(process.signals).toMatchObject(ends);
  });

  test('the current one is rejected', async () => {
    await tell({ kind: 'profile-answer', answer: { pId, state: 'rejected' } }, 1);
    expect(process.signals).toMatchObject(ends);
  });

  test('the device begins to evaluate by itself, but not if it says so again', async () => {
    const answer = { pId, state: 'current' as const, engine: 'device' as const };
    await tell({ kind: 'profile-answer', answer }, 1);
    await tell({ kind: 'profile-answer', answer }, 2);
    expect(process.signals).toMatchObject(ends);
  });

  test('a sense is removed from the configuration, but not if one is added', async () => {
    const [module] = configuration.module;
    const withSenses = (...sIds: string[]): UplinkContent => ({
      kind: 'configuration',
      configuration: {
        ...configuration,
        module: [{ moduleId: module?.moduleId ?? '', senses: sIds.map((sId) => ({ sId })) }],
      },
    });
    await tell(withSenses('0x01', '0x02', '0x03'), 1);
    await tell(withSenses('0x02', '0x03'), 2);
    expect(process.signals).toMatchObject([{ kind: 'configuration', sIds: ['0x02', '0x03'] }]);
  });
});
