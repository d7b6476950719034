import { afterEach, expect, it } from 'vitest';
import type { EventMeaning, NewEvent } from '../../src/contract/event.ts';
import {
  addMeanings,
  createKnownMeanings,
  forgetMeanings,
  keepMeanings,
} from '../../src/events/meanings.ts';
import { recordEvents } from '../../src/events/store.ts';
import { addDevice, openHouse, send, tooWarm } from '../alarms/house.ts';
import { testDatabase } from '../support/database.ts';
import { deviceEvent, newDevice, newEvent, senseEvent } from './app.ts';
import { readEvents, type Reading } from './sse.ts';

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

const dayMs = 86_400_000;

type Listed = { type: string; eventId: string; newValue?: number; meaning?: EventMeaning };

const warmer = {
  evId: 2,
  name: 'much too warm',
  eventLog: true,
  actions: { engine: { gotoStId: 2 } },
  causes: [{ sId: '0x01', thresholds: { isGt: 20 }, threshold: { count: 2 } }],
};

const purpose = () => {
  const given = tooWarm({}, { causes: [{ sId: '0x01', thresholds: { isGt: 8 } }] });
  given.states[0]?.events.push(warmer as never);
  return given;
};

it('after another profile the past keeps its names and conditions, in lists, exports and streams', async () => {
  const house = await openHouse(ends);
  const { app } = house;
  const login = { email: app.email, password: 'correct horse battery' };
  const { accountAuthToken: token } = await app.call<{ accountAuthToken: string }>(
    'POST',
    '/v2/accounts/login',
    login,
  );
  const before = await readEvents(`${house.service.url}/v2/events/stream`, token);
  const beginning = before.lastId();
  before.close();
  const freezer = await addDevice(house, [purpose()]);
  const stream: Reading = await readEvents(
    `${house.service.url}/v2/events/stream`,
    token,
    beginning,
  );
  ends.push(async () => stream.close());
  const query = `/v2/events?devices=${freezer.uuid}`;
  const list = async (path: string) => (await app.call<{ events: Listed[] }>('GET', path)).events;
  for (const val of [9, 21, 22]) await send(freezer, val);
  const names = { purposeName: 'freezer', stateName: 'cold' };
  const warm = {
    ...names,
    eventName: 'too warm',
    conditions: [{ sId: '0x01', threshold: {}, thresholds: { isGt: 8 } }],
  };
  const much = {
    ...names,
    eventName: 'much too warm',
    conditions: [{ sId: '0x01', threshold: { count: 2 }, thresholds: { isGt: 20 } }],
    to: { purposeName: 'freezer', stateName: 'warm' },
  };
  // The profile moved the device to its purpose before anything fired.
  const entered = { ...names, eventName: '', conditions: [] };
  const other = { ...purpose(), name: 'other', puId: 9 };
  const installed = { deviceAuthUuids: [freezer.uuid], purposes: [other] };
  await app.call('POST', '/v2/devices/profile', installed);
  await send(freezer, 1);
  const all = await list(`/v2/events/${freezer.uuid}`);
  const kept = [...all].toReversed().map(({ type, meaning }) => [type, meaning]);
  expect(kept).toEqual([
    ['device', entered],
    ['sense', warm],
    ['sense', warm],
    ['sense', warm],
    ['sense', much],
    ['device', much],
    ['device', { ...entered, purposeName: 'other' }],
  ]);
  const byId = (one: Listed, another: Listed) => Number(one.eventId) - Number(another.eventId);
  expect((await list(query)).toSorted(byId)).toEqual(all.toSorted(byId));
  const streamed = (await stream.until(10)).filter(({ eventId }) => eventId !== undefined);
  expect((streamed as Listed[]).toSorted(byId)).toEqual(all.toSorted(byId));
  const headers = { accept: 'text/csv', authorization: `Bearer ${token}` };
  const csv = await (await fetch(house.service.url + query, { headers })).text();
  expect(csv.split('\r\n')[0]).toMatch(/,purposeName,stateName,eventName$/);
  expect(csv).toMatch(/,freezer,cold,much too warm\r\n/);
});

it('a meaning is written with the first event of a day, and goes after the last event', async () => {
  const database = await testDatabase();
  ends.push(() => database.drop());
  const { db } = database;
  const device = await newDevice(db);
  let nowTs = Date.now() - 100 * dayMs;
  const known = createKnownMeanings(() => nowTs);
  const meaning: EventMeaning = {
    purposeName: 'p'.repeat(400),
    stateName: '😀'.repeat(400),
    eventName: '',
    conditions: [{ sId: '0x1', threshold: {}, thresholds: { isGt: 8 } }],
  };
  const given = (key: string): NewEvent => ({
    ...newEvent(device, key, senseEvent(nowTs, '0x1')),
    meaning,
  });
  const record = async (events: NewEvent[]) => {
    const meanings = known.unwritten(events);
    await db.transaction(async (tx) => {
      await recordEvents(tx, events);
      if (meanings.length > 0) await keepMeanings(tx, meanings);
    });
    known.written(meanings);
    return meanings.length;
  };
  const find = async () => {
    const row: { body: object; meaning?: EventMeaning } = { body: deviceEvent(nowTs) };
    await addMeanings(db, device.accountId, [row]);
    return row.meaning;
  };
  expect(await find()).toBeUndefined();
  expect([await record([given('1'), given('2')]), await record([given('3')])]).toEqual([1, 0]);
  expect(await find()).toEqual({
    ...meaning,
    purposeName: 'p'.repeat(300),
    stateName: '😀'.repeat(300),
  });
  nowTs += 20 * dayMs;
  expect(await record([given('4')])).toBe(1);
  expect(await forgetMeanings(db, nowTs)).toBe(0);
  expect(await forgetMeanings(db, nowTs + 13 * dayMs)).toBe(0);
  expect(await find()).toBeDefined();
  expect(await forgetMeanings(db, nowTs + 15 * dayMs)).toBe(1);
  expect(await find()).toBeUndefined();
  meaning.conditions = Array.from({ length: 200 }, () => ({
    sId: '0x1',
    threshold: {},
    thresholds: { isGt: 8 },
  }));
  nowTs += 20 * dayMs;
  expect(await record([given('5')])).toBe(1);
  expect(await find()).not.toHaveProperty('conditions');
});

it('profiles with the same content share a meaning, which they keep when the content goes', async () => {
  const database = await testDatabase();
  ends.push(() => database.drop());
  const { db } = database;
  const device = await newDevice(db);
  const { rows } = await db.query<{ pId: string; contentId: number }>(
    `with content as (
       insert into profile_content (account_id, hash, bytes, purposes) values ($1, '', 2, '[]') returning id
     )
     insert into profile (account_id, content_id)
     select $1, id from content cross join generate_series(1, 3)
     returning id as "pId", content_id as "contentId"`,
    [device.accountId],
  );
  const meaning: EventMeaning = {
    purposeName: 'freezer',
    stateName: 'cold',
    eventName: 'too warm',
    conditions: [],
  };
  const events = rows.map(({ pId, contentId }, n): NewEvent => {
    const event = senseEvent(Date.now(), '0x1');
    event.cause.engine.pId = pId;
    return { ...newEvent(device, `${n}`, event), meaning, contentId };
  });
  const known = createKnownMeanings(Date.now);
  const unwritten = known.unwritten(events);
  expect(unwritten).toHaveLength(1);
  await db.transaction((tx) => keepMeanings(tx, unwritten));
  known.written(unwritten);
  expect(known.unwritten(events)).toEqual([]);
  const find = async () => {
    const found: { body: object; meaning?: EventMeaning }[] = events.map(({ event }) => ({
      body: event,
    }));
    await addMeanings(db, device.accountId, found);
    return found.map((one) => one.meaning);
  };
  expect(await find()).toEqual([meaning, meaning, meaning]);
  await db.query(
    `insert into device_profile (device_id, profile_id, state) values ($1, $2, 'pending')`,
    [device.deviceId, rows[0]?.pId],
  );
  await db.query(`update device_profile set state = 'current'`);
  await db.query('delete from device_profile');
  await db.query('delete from profile_content');
  expect(await find()).toEqual([meaning, meaning, meaning]);
  // A device reports what it likes.
  const odd = { cause: { engine: { pId: "no'uuid", puId: 1e15, stId: 1, evId: 1, ts: 0 } } };
  const row: { body: object; meaning?: EventMeaning } = { body: odd };
  await addMeanings(db, device.accountId, [row]);
  expect(row.meaning).toBeUndefined();
});
