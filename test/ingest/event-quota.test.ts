import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Purpose } from '../../src/contract/purpose.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import * as harness from './harness.ts';
import { forever, ingestProcess, insertDevice, measured, now, uplink } from './harness.ts';

let database: TestDatabase;
let own: harness.IngestProcess;
/** The quotas: today, of one message, and the rate. */
let [left, perMessage, leftNow] = [3, Infinity, Infinity];
let counted = { measurements: 0, events: 0, leftOut: 0, moves: 0, alarms: 0 };
beforeEach(async () => {
  database = await testDatabase();
  counted = { measurements: 0, events: 0, leftOut: 0, moves: 0, alarms: 0 };
  [left, perMessage, leftNow] = [3, Infinity, Infinity];
  own = ingestProcess(database.url, {
    eventQuota: {
      eventsLeft: () => left - counted.events,
      eventsLeftNow: () => leftNow - counted.events - counted.moves,
      eventsPerMessage: () => perMessage,
      count(_accountId, more) {
        counted.measurements += more.measurements;
        counted.events += more.events;
        counted.leftOut += more.leftOut;
        counted.moves += more.moves;
        counted.alarms += more.alarms;
      },
    },
  });
});
afterEach(async () => {
  await own.close();
  await database.drop();
});

/** An event of any measurement that is recorded, notifies people and moves the device to and fro. */
const to = (gotoStId: number) => ({
  evId: 1,
  eventLog: true,
  actions: { engine: { gotoStId }, cloud: { sendPush: true } },
  causes: [{ sId: '0x01', thresholds: { isAny: true } }],
});
const swing = Purpose.parse({
  puId: 7,
  initStId: 1,
  states: [
    { stId: 1, events: [to(2)] },
    { stId: 2, events: [to(1)] },
  ],
});

describe('events beyond the daily quota', () => {
  it('are not recorded; measurements are, the device moves, people are notified', async () => {
    const device = await insertDevice(database.db);
    await harness.installProfile(database.db, device, [swing]);
    const points = Array.from({ length: 5 }, (_, n) => [now + n, n] as [number, number]);
    await own.ingest.ingest(device, measured('0x01', ...points), forever);
    await own.ingest.ingest(device, measured('0x01', [now + 5, 5], [now + 6, 6]), forever);

    const events = await harness.recordedEvents(database.db, device);
    const times = (type: string) =>
      events.filter((event) => event.type === type).map(({ ts }) => ts - now);
    expect(times('sense')).toEqual([0, 1, 2]);
    const moves = events.filter(({ body }) => 'event' in body && body.event === 'stateChanged');
    expect(moves).toHaveLength(7);
    expect(await harness.storedValues(database.db, device)).toHaveLength(7);
    expect(own.rings).toHaveLength(7);
    expect(own.down.filter(({ topic }) => topic === 'state')).toHaveLength(7);
    expect(counted).toEqual({ measurements: 7, events: 3, leftOut: 4, moves: 8, alarms: 7 });
  });

  it('are reported as a rejection, once a minute', async () => {
    const device = await insertDevice(database.db);
    await harness.installProfile(database.db, device, [swing]);
    for (let n = 0; n < 10; n += 1)
      await own.ingest.ingest(device, measured('0x01', [now + n, n]), forever);
    expect(await harness.rejections(database.db, device)).toEqual([
      { reason: 'events-not-recorded', path: null, payload: '', more: null },
    ]);
    const errors = own.down.filter(({ topic }) => topic === 'errors');
    expect(errors).toMatchObject([
      { payload: { reason: 'events-not-recorded', message: expect.stringContaining('1 events') } },
    ]);
    expect(counted).toMatchObject({ events: 3, leftOut: 7 });
  });

  it('count once, as do alarms, however often their transaction is tried', async () => {
    left = 100;
    const device = await insertDevice(database.db);
    await harness.installProfile(database.db, device, [swing]);
    await database.db.query(`
      create function refuse() returns trigger language plpgsql as
      $$ begin raise exception 'not now' using errcode = '40P01'; end $$`);
    await database.db.query(`
      create trigger refused before insert on measurement
      for each row execute function refuse()`);
    const stored = own.ingest.ingest(device, measured('0x01', [now, 1]), forever);
    await expect.poll(() => own.rings.length).toBeGreaterThan(2);
    expect(counted).toMatchObject({ events: 0, alarms: 0 });
    await database.db.query('drop trigger refused on measurement');
    await stored;
    expect(counted).toEqual({ measurements: 1, events: 1, leftOut: 0, moves: 2, alarms: 1 });
  });

  it('still notify people, even if the device’s own engine found them', async () => {
    const device = await insertDevice(database.db);
    const pId = await harness.installProfile(database.db, device, [swing]);
    const answer = { pId, state: 'current' as const, engine: 'device' as const };
    await own.ingest.ingest(device, uplink({ kind: 'profile-answer', answer }), forever);
    const report = (n: number) => ({
      index: n,
      value: {
        cause: {
          engine: { pId, puId: 7, stId: 1, evId: 1, ts: now + n },
          senses: [{ sId: '0x01', val: n, ts: now + n }],
        },
      },
    });
    const items = [0, 1, 2, 3, 4].map(report);
    await own.ingest.ingest(device, uplink({ kind: 'events', items }), forever);
    const events = await harness.recordedEvents(database.db, device);
    expect(events.filter(({ type }) => type === 'sense')).toHaveLength(3);
    expect(own.rings).toHaveLength(5);
    // A redelivery is recognised by its row; an event without one notifies people again.
    await own.ingest.ingest(device, uplink({ kind: 'events', items: items.slice(1, 4) }), forever);
    expect(counted).toMatchObject({ events: 3, leftOut: 5 });
    expect(own.rings).toHaveLength(6);
    expect(await harness.recordedEvents(database.db, device)).toEqual(events);
  });

  it('include those of one message beyond its quota, even if it is cut', async () => {
    [left, perMessage] = [100, 4];
    const small = ingestProcess(database.url, {
      maxBatchItems: 3,
      eventQuota: {
        eventsLeft: () => left,
        eventsLeftNow: () => Infinity,
        eventsPerMessage: () => perMessage,
        count: (_accountId, { events, leftOut }) => {
          counted.events += events;
          counted.leftOut += leftOut;
        },
      },
    });
    const device = await insertDevice(database.db);
    await harness.installProfile(database.db, device, [swing]);
    const points = Array.from({ length: 9 }, (_, n) => [now + n, n] as [number, number]);
    await small.ingest.ingest(device, measured('0x01', ...points), forever);
    await small.ingest.ingest(device, measured('0x01', [now + 9, 9], [now + 10, 10]), forever);
    await small.close();
    const events = await harness.recordedEvents(database.db, device);
    const times = events.filter(({ type }) => type === 'sense').map(({ ts }) => ts - now);
    expect(times).toEqual([0, 1, 2, 3, 9, 10]);
    expect(counted).toMatchObject({ events: 6, leftOut: 5 });
    expect(await harness.storedValues(database.db, device)).toHaveLength(11);
    expect(small.down.filter(({ topic }) => topic === 'errors')).toMatchObject([
      { payload: { message: expect.stringContaining('eventsPerSecond') } },
    ]);
  });

  it('include those beyond the rate, of any message; changes of state count', async () => {
    [left, leftNow] = [100, 6];
    const device = await insertDevice(database.db);
    await harness.installProfile(database.db, device, [swing]);
    // One for the purpose that it enters; then each measurement is an event and a change of state.
    for (let n = 0; n < 5; n += 1)
      await own.ingest.ingest(device, measured('0x01', [now + n, n]), forever);
    const events = await harness.recordedEvents(database.db, device);
    expect(events.filter(({ type }) => type === 'sense').map(({ ts }) => ts - now)).toEqual([
      0, 1, 2,
    ]);
    expect(counted).toEqual({ measurements: 5, events: 3, leftOut: 2, moves: 6, alarms: 5 });
    expect(own.rings).toHaveLength(5);
    expect(own.down.filter(({ topic }) => topic === 'errors')).toMatchObject([
      { payload: { message: expect.stringContaining('eventsPerSecond') } },
    ]);
  });

  it('include all of a message that could not wait', async () => {
    [left, perMessage] = [100, 100];
    const device = await insertDevice(database.db);
    await harness.installProfile(database.db, device, [swing]);
    const message = { ...measured('0x01', [now, 0], [now + 1, 1]), leavesEventsOut: true as const };
    await own.ingest.ingest(device, message, forever);
    await own.ingest.ingest(device, measured('0x01', [now + 2, 2]), forever);
    const events = await harness.recordedEvents(database.db, device);
    expect(events.filter(({ type }) => type === 'sense').map(({ ts }) => ts - now)).toEqual([2]);
    expect(own.rings).toHaveLength(3);
    expect(counted).toMatchObject({ measurements: 3, events: 1, leftOut: 2 });
  });
});
