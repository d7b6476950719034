import { afterEach, expect, test } from 'vitest';
import { actWithin } from '../../src/alarms/act.ts';
import { lockAlarms, takeIn } from '../../src/alarms/store.ts';
import { removeContacts } from '../../src/contacts/contacts.ts';
import type { AlarmSignal } from '../../src/contract/alarm.ts';
import type { Sql } from '../../src/db/sql.ts';
import { findNewest } from '../../src/measurements/store.ts';
import { DeliveryError, type Driver } from '../../src/notifications/channels/channel.ts';
import { giveUpOld, takeMessages } from '../../src/notifications/outbox.ts';
import { reasons } from '../../src/notifications/reasons.ts';
import { startHookReceiver } from '../support/hook-receiver.ts';
import * as given from '../notifications/fixtures.ts';
import { endedOf, firedOf, minuteMs, useAlarms } from './notify-world.ts';

const { world, closing, start, decide, addContact, findAlarm, usedBy, db } = useAlarms();
const dayMs = 86_400_000;

const acknowledge = (tx: Sql, owner: given.Owner, alarmIds: number[]) =>
  actWithin(
    tx,
    {
      db: db(),
      bus: { publish: () => undefined } as never,
      quotasOf: () => world.quotas,
      findNewest,
    },
    {
      accountId: owner.accountId,
      within: null,
      by: { actor: { by: 'account' } as never, ts: world.nowTs },
    },
    { action: { action: 'acknowledge' }, alarmIds, jobId: crypto.randomUUID() },
  );

/** Two devices of an account. A webhook is told of the one, an e-mail address of the other; both an hour later. */
async function givenTwoDevices() {
  world.email = { smtpUrl: 'smtp://127.0.0.1:1', from: 'a@example.com', timeoutMs: 1_000 };
  const hooked = await given.givenDevice(db());
  const { rows } = await db().query<{ id: number; uuid: string }>(
    `insert into device (account_id, connector_id, name, configuration, labels)
     values ($1, 1, 'Attic', '{"device": {"name": "Attic"}, "module": []}', '{mailed}') returning id, uuid`,
    [hooked.accountId],
  );
  const mailed = { ...hooked, deviceId: rows[0]?.id ?? 0, deviceUuid: rows[0]?.uuid ?? '' };
  await db().query(`update device set labels = '{hooked}' where id = $1`, [hooked.deviceId]);
  await addContact(hooked, 'webhook', 'http://127.0.0.1:1/', { afterMs: 60 * minuteMs });
  await addContact(hooked, 'email', 'a@example.com', { afterMs: 60 * minuteMs });
  await db().query(
    `update contact set labels = case kind when 'email' then '{mailed}' else '{hooked}' end::text[]`,
  );
  return { hooked, mailed };
}

const countWaiting = async () => {
  const { rows } = await db().query<{ waiting: number }>(
    `select count(*)::int as waiting from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return rows[0]?.waiting;
};

const lockCounter = (tx: Sql, { accountId }: given.Owner, kind: string) =>
  tx.query(
    `select from message_count where kind = $1 and account_id = $2 and key = '' for update nowait`,
    [kind, accountId],
  );

/** Runs `work` while another transaction holds the first counter, and shows that `work` does not hold the second. */
async function expectInOrder(owner: given.Owner, work: () => Promise<unknown>): Promise<void> {
  let working: Promise<unknown> = Promise.resolve();
  await db().transaction(async (tx) => {
    await lockCounter(tx, owner, 'account');
    working = work();
    await expect.poll(countWaiting).toBe(1);
    await lockCounter(tx, owner, 'webhook');
  });
  await working;
}

test('some alarms of a job lock the counters of all their messages at once, in one order', async () => {
  const { hooked, mailed } = await givenTwoDevices();
  const outbox = await start();
  await decide(outbox, [firedOf(hooked, world.nowTs)]);
  await decide(outbox, [firedOf(mailed, world.nowTs)]);
  const ids = [await findAlarm(mailed), await findAlarm(hooked)].map(({ id }) => id);
  expect(await usedBy(hooked, 'webhook')).toBe(1);
  expect(await usedBy(hooked, 'account')).toBe(1);
  await expectInOrder(hooked, () =>
    db().transaction((tx) => acknowledge(tx, hooked, ids.toReversed())),
  );
  expect(await usedBy(hooked, 'webhook')).toBe(0);
  expect(await usedBy(hooked, 'account')).toBe(0);
});

test('what measurements open and what they close lock the counters at once, in one order', async () => {
  const { hooked, mailed } = await givenTwoDevices();
  const outbox = await start();
  await decide(outbox, [firedOf(mailed, world.nowTs)]);
  // So that there is a counter to hold.
  await decide(outbox, [firedOf(hooked, world.nowTs, { evId: 4 })]);
  const signals: AlarmSignal[] = [firedOf(hooked, world.nowTs), endedOf(mailed, world.nowTs)];
  await expectInOrder(hooked, () => decide(outbox, signals));
  expect(await usedBy(hooked, 'webhook')).toBe(2);
  expect(await usedBy(hooked, 'account')).toBe(0);
});

/** So that a test that fails does not wait for its deliveries. It runs before those of `useAlarms`. */
const releases = new Set<() => void>();
afterEach(() => {
  for (const release of releases) release();
  releases.clear();
});

/** A push driver whose deliveries end when the test says so. */
function heldDriver() {
  const under: ((answer: 'ok' | 'again') => void)[] = [];
  const driver: Driver = {
    name: 'held',
    send: () =>
      new Promise((resolve, reject) => {
        releases.add(resolve);
        under.push((answer) =>
          answer === 'ok' ? resolve() : reject(new DeliveryError('again', 'provider-busy', 'no')),
        );
      }),
    close: async () => {},
  };
  return { driver, under };
}

async function givenUnderWay() {
  const { driver, under } = heldDriver();
  world.drivers.push = driver;
  const owner = await given.givenDevice(db(), ['token']);
  const outbox = await start();
  await decide(outbox, [firedOf(owner, world.nowTs)]);
  await expect.poll(() => under.length).toBe(1);
  return { owner, outbox, under };
}

test('a message is not given up as too late while it is being delivered', async () => {
  world.maxAttempts = 2;
  const { owner, under } = await givenUnderWay();
  await db().query(`update notification set created_at = created_at - interval '25 hours'`);
  const giveUp = async () => {
    await giveUpOld(db(), { beforeMs: world.nowTs - dayMs, nowTs: world.nowTs });
    return (await db().query(`select from notification where reason = 'too-late'`)).rowCount;
  };
  expect(await giveUp()).toBe(0);
  under[0]?.('again');
  // It is tried again later, so nobody is at work on it.
  await given.outcomesOf(db(), owner, ([one]) => one?.error === reasons['provider-busy']);
  expect(await giveUp()).toBe(1);
  expect(await usedBy(owner, 'account')).toBe(0);
});

test('what is delivered while its contact is removed was sent', async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  releases.add(release);
  const receiver = await startHookReceiver(() => released.then(() => ({ status: 204 })));
  closing.push(receiver.close);
  const owner = await given.givenDevice(db());
  await addContact(owner, 'webhook', receiver.url);
  const outbox = await start();
  await decide(outbox, [firedOf(owner, world.nowTs)]);
  await expect.poll(() => receiver.received.length).toBe(1);
  const { rows } = await db().query<{ id: number }>('select id from contact');
  const ids = rows.map(({ id }) => id);
  await db().transaction((tx) => removeContacts(tx, ids, world.nowTs));
  release();
  await given.outcomesOf(db(), owner, ([one]) => one?.state !== 'queued');
  expect(await given.outcomesOf(db(), owner)).toMatchObject([{ state: 'sent' }]);
  expect(await findAlarm(owner)).toMatchObject({ told: 'told' });
});

test('the outcome of a message waits for who changes its alarm, also if another alarm has taken that in', async () => {
  const { owner, outbox, under } = await givenUnderWay();
  const { id: first } = await findAlarm(owner);
  under[0]?.('ok');
  await expect.poll(() => findAlarm(owner)).toMatchObject({ told: 'told' });
  await decide(outbox, [firedOf(owner, world.nowTs, { evId: 4 })]);
  await expect.poll(() => under.length).toBe(2);
  const { id: second } = await findAlarm(owner);
  await db().transaction(async (tx) => {
    await takeMessages(tx, { alarmId: first, announcement: 1 }, second);
    await takeIn(tx, first, second);
  });
  await db().transaction(async (tx) => {
    await lockAlarms(tx, [first]);
    under[1]?.('ok');
    await expect.poll(countWaiting).toBe(1);
    const outcomes = await given.outcomesOf(db(), owner);
    expect(outcomes.map(({ state }) => state)).toEqual(['queued', 'sent']);
  });
  await given.outcomesOf(db(), owner, (all) => all.every(({ state }) => state === 'sent'));
});
