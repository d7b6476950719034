import { afterEach, expect, it } from 'vitest';
import type { AlarmSignal } from '../../src/contract/alarm.ts';
import { AlarmDecider, type DecideDeps } from '../../src/alarms/decide.ts';
import { listWaitingSenses } from '../../src/alarms/store.ts';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import type { Database } from '../../src/db/database.ts';
import type { Sql } from '../../src/db/sql.ts';
import { connectDevice } from '../journeys/device.ts';
import { testService } from '../journeys/service.ts';
import { insertDevice } from '../ingest/devices.ts';
import { waitForBlocked } from '../ingest/harness.ts';
import { quotas } from '../notifications/fixtures.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { fired, signal, start } from './fixtures.ts';
import { addDevice, addWebhook, change, listAlarms, openHouse, received, send } from './house.ts';
import { tooWarm, whatEventsSay } from './house.ts';

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

async function opened(): Promise<TestDatabase> {
  const database = await testDatabase();
  ends.push(database.drop);
  return database;
}

/** Decides as a process does that has webhooks. */
function deciding(more: Partial<DecideDeps> = {}) {
  const deps: DecideDeps = {
    rules: { ringMaxAgeMs: 900_000, reportedForMs: 3_600_000 },
    notifying: {
      quotasOf: () => quotas,
      isAllowedNumber: () => true,
      isSmsForAll: true,
      ownChannels: ['webhook'],
    },
    clock: () => start,
    eventsLeft: () => 100,
    mayTellFirings: () => true,
    ...more,
  };
  const decider = new AlarmDecider(deps);
  return (tx: Sql, signals: AlarmSignal[]) => decider.decide(tx, signals);
}

/** A device whose account is told by a webhook. */
async function insertWatched(db: Database): Promise<DeviceIdentity> {
  const device = await insertDevice(db);
  await db.query(
    `insert into contact (account_id, kind, address, address_normal, place)
     values ($1, 'webhook', 'https://hooks.example.org/', 'https://hooks.example.org/', 0)`,
    [device.accountId],
  );
  return device;
}

/** The same signal from another device. */
const of = (device: DeviceIdentity, given: AlarmSignal): AlarmSignal => ({ ...given, device });
const saidBy = (given: AlarmSignal) => {
  if (given.kind !== 'fired') throw new Error(given.kind);
  return given.event.notified === true ? 'told' : given.event.notNotified;
};

it('two processes that evaluate two firings of one episode, one after the other, send one message', async () => {
  const database = await opened();
  const first = await openHouse(ends, { DATABASE_URL: database.url });
  const second = await testService({ DATABASE_URL: database.url }, { change });
  ends.push(second.close);
  await addWebhook(first);
  const freezer = await addDevice(first, [tooWarm()]);
  const elsewhere = await connectDevice({ ...freezer.registration, port: second.mqttPort });
  ends.push(elsewhere.end);
  await send(freezer, 9);
  await send({ ...freezer, device: elsewhere }, 10);
  await send(freezer, 11);
  expect(await whatEventsSay(first, freezer)).toEqual(['told', 'same-episode', 'same-episode']);
  await expect.poll(async () => (await listAlarms(first))[0]?.told).toBe('told');
  expect(await listAlarms(first)).toMatchObject([{ state: 'open', firings: 3 }]);
  expect(received(first)).toHaveLength(1);
});

it('two transactions with firings of one event: the second waits, and notifies nobody', async () => {
  const { db } = await opened();
  const device = await insertWatched(db);
  const decide = deciding();
  const [one, other] = [of(device, fired()), of(device, fired({ atMs: 1, isFirst: false }))];
  const isOpen = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const first = db.transaction(async (tx) => {
    await decide(tx, [one]);
    isOpen.resolve();
    await goOn.promise;
  });
  await isOpen.promise;
  const second = db.transaction((tx) => decide(tx, [other]));
  await waitForBlocked(db);
  goOn.resolve();
  await Promise.all([first, second]);
  expect([saidBy(one), saidBy(other)]).toEqual(['told', 'same-episode']);
  const { rows: messages } = await db.query('select type from notification');
  expect(messages).toEqual([{ type: 'opened' }]);
  const { rows } = await db.query('select firings, announcement from alarm');
  expect(rows).toEqual([{ firings: 2, announcement: 1 }]);
});

it('a transaction that rolls back leaves no alarm, and no change for streams', async () => {
  const { db } = await opened();
  const device = await insertWatched(db);
  const decide = deciding();
  const away = db.transaction(async (tx) => {
    await decide(tx, [of(device, fired())]);
    throw new Error('The batch fails.');
  });
  await expect(away).rejects.toThrow('The batch fails.');
  const { rows } = await db.query(
    'select (select count(*) from alarm) as alarms, (select count(*) from alarm_change) as changes',
  );
  expect(rows).toEqual([{ alarms: 0, changes: 0 }]);
});

it('over the quota of events, open alarms are stored, and deleted when they close; streams do not receive them', async () => {
  const { db } = await opened();
  const device = await insertWatched(db);
  const decide = deciding({ eventsLeft: () => 1 });
  const second = { puId: 1, stId: 1, evId: 2 };
  const take = (...given: AlarmSignal[]) => db.transaction((tx) => decide(tx, given));
  const within = await take(of(device, fired()), of(device, fired({ of: second })));
  expect(within).toEqual(new Map([[device.accountId, 1]]));
  const events = async () =>
    (await db.query<{ ev_id: number }>('select ev_id from alarm order by ev_id')).rows;
  expect(await events()).toEqual([{ ev_id: 1 }, { ev_id: 2 }]);
  await take(of(device, signal({ kind: 'profile' })));
  expect(await events()).toEqual([{ ev_id: 1 }]);
  const { rows } = await db.query(
    `select body ->> 'change' as change, count(*) from alarm_change group by 1 order by 1`,
  );
  expect(rows).toEqual([
    { change: 'closed', count: 1 },
    { change: 'opened', count: 1 },
  ]);
});

it('streams receive that alarms go on within the rate, and everything else always', async () => {
  const { db } = await opened();
  const device = await insertWatched(db);
  const ofDevice = (given: AlarmSignal) => of(device, given);
  const asked: [number, number][] = [];
  const decide = deciding({
    mayTellFirings: (...given) => asked.push(given) <= 1,
  });
  const take = (...given: AlarmSignal[]) => db.transaction((tx) => decide(tx, given.map(ofDevice)));
  for (const atMs of [0, 1, 2, 3]) await take(fired({ atMs, isFirst: atMs === 0 }));
  await take(signal({ kind: 'profile' }));
  expect(asked).toEqual(Array.from({ length: 3 }, () => [device.accountId, 1]));
  const { rows } = await db.query(
    `select body ->> 'change' as change, body -> 'alarm' -> 'firings' as firings
       from alarm_change order by seq`,
  );
  expect(rows).toEqual([
    { change: 'opened', firings: 1 },
    { change: 'fired', firings: 2 },
    { change: 'closed', firings: 4 },
  ]);
});

it('an alarm with long names counts as several events', async () => {
  const { db } = await opened();
  const device = await insertWatched(db);
  const decide = deciding();
  // Four bytes each, written with every change.
  const named = of(device, { ...fired(), name: '\u{1f321}'.repeat(200) } as AlarmSignal);
  const opens = await db.transaction((tx) => decide(tx, [named]));
  expect(opens).toEqual(new Map([[device.accountId, 3]]));
});

it('over the quota, an alarm that one transaction opens and closes leaves nothing', async () => {
  const { db } = await opened();
  const device = await insertWatched(db);
  const both = [of(device, fired()), of(device, signal({ kind: 'profile' }))];
  const rowsWhere = async (eventsLeft: number) => {
    const decide = deciding({ eventsLeft: () => eventsLeft });
    await db.transaction((tx) => decide(tx, both));
    const { rows } = await db.query(
      'select (select count(*) from alarm) as alarms, (select count(*) from alarm_change) as changes',
    );
    return rows;
  };
  expect(await rowsWhere(0)).toEqual([{ alarms: 0, changes: 0 }]);
  expect(await rowsWhere(1)).toEqual([{ alarms: 1, changes: 1 }]);
});

it('ingest knows which senses alarms wait for, as long as they do', async () => {
  const { db } = await opened();
  const device = await insertWatched(db);
  const decide = deciding();
  const take = (given: AlarmSignal) => db.transaction((tx) => decide(tx, [of(device, given)]));
  const waiting = () => listWaitingSenses(db, [device.deviceId]);
  await take(fired({ isFresh: false }));
  expect(await waiting()).toEqual(new Map([[device.deviceId, new Set(['0x01'])]]));
  await take(signal({ kind: 'heard', sIds: ['0x01'] }));
  expect(await waiting()).toEqual(new Map());
});

it('an episode announced before an upgrade gets an alarm that counts as announced, and notifies nobody', async () => {
  const database = await opened();
  const house = await openHouse(ends, { DATABASE_URL: database.url });
  await addWebhook(house);
  const freezer = await addDevice(house, [tooWarm()]);
  await send(freezer, 9);
  await house.receiver.request();
  // As the previous version left it: the evidence of an announced episode, and no alarm.
  await database.db.query('delete from alarm');
  await database.db.query('insert into alarm_upgrade select device_id from device_state');
  await send(freezer, 10);
  expect((await whatEventsSay(house, freezer)).at(-1)).toBe('same-episode');
  expect(await listAlarms(house)).toMatchObject([{ state: 'open', told: 'told', firings: 1 }]);
  await send(freezer, 5);
  await send(freezer, 9);
  expect((await whatEventsSay(house, freezer)).at(-1)).toBe('told');
  await expect.poll(() => received(house).length).toBe(2);
});
