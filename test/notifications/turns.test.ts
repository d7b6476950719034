import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { ContactOptions } from '../../src/notifications/contact-side.ts';
import { startNotifications, type Notifications } from '../../src/notifications/notifications.ts';
import { giveUpOld } from '../../src/notifications/turn-queries.ts';
import { OutboxConfig } from '../../src/notifications/settings.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { startHookReceiver, type HookReply, type Received } from '../support/hook-receiver.ts';
import { startMailServer } from '../support/smtp.ts';
import * as given from './fixtures.ts';

let database: TestDatabase;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  database = await testDatabase();
});
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
  await database.db.query('delete from account');
});
afterAll(() => database.drop());

async function start(options: { contacts?: Partial<ContactOptions>; clock?: () => number } = {}) {
  const outbox: Notifications = await startNotifications({
    contacts: { ...given.contacts, ...options.contacts },
    db: database.db,
    connectionString: database.url,
    config: OutboxConfig.parse({ pollIntervalMs: 100, maxAttempts: 20 }),
    quotasOf: () => given.quotas,
    isSmsForAll: false,
    log: given.silent,
    clock: options.clock ?? Date.now,
    drivers: { push: given.scriptedDriver().driver, sms: given.scriptedDriver().driver },
  });
  closing.push(outbox.close);
  return outbox;
}

async function givenReceiver(reply?: (request: Received) => HookReply | Promise<HookReply>) {
  const receiver = await startHookReceiver(reply);
  closing.push(receiver.close);
  return receiver;
}

async function addContact(
  { accountId }: given.Owner,
  kind: 'email' | 'webhook',
  address: string,
): Promise<void> {
  await database.db.query(
    `insert into contact (account_id, kind, address, address_normal, place, confirmed_at)
     values ($1, $2, $3, $3, 0, now())`,
    [accountId, kind, address],
  );
}

const pushes = (owner: given.Owner, count: number) =>
  Array.from({ length: count }, (_, n) => given.pushOf(owner, `number ${n}`));

const sumOf = (counts: ReadonlyMap<string, number>) =>
  [...counts.values()].reduce((sum, n) => sum + n, 0);

const titleIn = ({ body }: Received) =>
  (JSON.parse(body) as { data: { title: string } }).data.title;

const statesOf = async (owner: given.Owner) =>
  (await given.outcomesOf(database.db, owner)).map(({ state, reason }) => [state, reason]);

test(
  'receivers of one account that hang delay no mail of another',
  { timeout: 120_000 },
  async () => {
    const mail = await startMailServer();
    closing.push(mail.close);
    const hanging = await givenReceiver(() => 'never');
    const email = { smtpUrl: mail.url, from: 'service@example.org', timeoutMs: 5_000 };
    const { enqueue } = await start({ contacts: { email } });
    const [noisy, other] = [
      await given.givenDevice(database.db),
      await given.givenDevice(database.db),
    ];
    for (let n = 0; n < 10; n += 1) await addContact(noisy, 'webhook', `${hanging.url}/${n}`);
    await addContact(other, 'email', 'someone@example.org');
    await database.db.transaction((tx) => enqueue(tx, pushes(noisy, 100)));
    await expect.poll(() => hanging.received.length, { timeout: 30_000 }).toBe(2);
    const startedMs = performance.now();
    await database.db.transaction((tx) => enqueue(tx, [given.pushOf(other)]));
    await mail.mailTo('someone@example.org');
    expect(performance.now() - startedMs).toBeLessThan(5_000);
    const { rows } = await database.db.query<{ n: number }>(
      `select count(*) as n from notification where account_id = $1`,
      [noisy.accountId],
    );
    expect(rows[0]?.n).toBe(1_000);
  },
);

test('a recipient gets one message at a time, in order, an account two', async () => {
  const most = { all: 0, one: 0 };
  const open = new Map<string, number>();
  const receiver = await givenReceiver(async ({ url }) => {
    open.set(url, (open.get(url) ?? 0) + 1);
    most.one = Math.max(most.one, open.get(url) ?? 0);
    most.all = Math.max(most.all, sumOf(open));
    // A receiver that takes its time: what is sent meanwhile is seen.
    await delay(20);
    open.set(url, (open.get(url) ?? 1) - 1);
    return { status: 204 };
  });
  const owner = await given.givenDevice(database.db);
  for (const path of ['a', 'b', 'c', 'd'])
    await addContact(owner, 'webhook', `${receiver.url}/${path}`);
  const { enqueue } = await start();
  await database.db.transaction((tx) => enqueue(tx, pushes(owner, 10)));
  await expect.poll(() => receiver.received.length, { timeout: 30_000 }).toBe(40);
  expect(most.one).toBe(1);
  expect(most.all).toBe(2);
  for (const path of ['/a', '/b', '/c', '/d']) {
    const titles = receiver.received.filter(({ url }) => url === path).map(titleIn);
    expect(titles).toEqual(pushes(owner, 10).map((_, n) => `Cellar: number ${n}`));
  }
});

test('a recipient that failed five times running rests 15 minutes', async () => {
  let nowMs = Date.now();
  let isBack = false;
  const receiver = await givenReceiver(() => ({ status: isBack ? 204 : 500 }));
  const owner = await given.givenDevice(database.db);
  await addContact(owner, 'webhook', receiver.url);
  const { enqueue } = await start({ clock: () => nowMs });
  await database.db.transaction((tx) => enqueue(tx, [given.pushOf(owner)]));
  for (let attempt = 1; attempt <= 5; attempt += 1) {
    await expect.poll(() => receiver.received.length, { timeout: 20_000 }).toBe(attempt);
    await expect.poll(failuresOf(owner), { timeout: 20_000 }).toBe(attempt);
    nowMs += 180_000;
  }
  const [{ rests } = { rests: 0 }] = (
    await database.db.query<{ rests: number }>('select rests_until as rests from contact')
  ).rows;
  // It failed three minutes ago by this clock.
  expect(rests - nowMs).toBe(900_000 - 180_000);
  nowMs = rests - 1;
  await database.db.transaction((tx) => enqueue(tx, [given.pushOf(owner)]));
  // Another account's message goes through meanwhile, so turns were taken.
  const other = await given.givenDevice(database.db);
  await addContact(other, 'webhook', `${receiver.url}/other`);
  isBack = true;
  await database.db.transaction((tx) => enqueue(tx, [given.pushOf(other)]));
  await receiver.request(({ url }) => url === '/other');
  expect(receiver.received.filter(({ url }) => url === '/')).toHaveLength(5);
  nowMs = rests + 1;
  await expect
    .poll(() => statesOf(owner), { timeout: 20_000 })
    .toEqual([
      ['sent', undefined],
      ['sent', undefined],
    ]);
  expect(await failuresOf(owner)()).toBe(0);
});

const failuresOf =
  ({ accountId }: given.Owner) =>
  async () => {
    const { rows } = await database.db.query<{ failures: number }>(
      'select failures from contact where account_id = $1 and busy_until is null',
      [accountId],
    );
    return rows[0]?.failures;
  };

test('what a process had under way when it ended is sent by another, with the same webhook-id', async () => {
  let nowMs = Date.now();
  const receiver = await givenReceiver();
  const owner = await given.givenDevice(database.db);
  await addContact(owner, 'webhook', receiver.url);
  const { enqueue, close } = await start({ clock: () => nowMs });
  await close();
  closing.length = closing.length - 1;
  await database.db.transaction((tx) => enqueue(tx, [given.pushOf(owner)]));
  await database.db.query(`update contact set busy_until = ms_to_timestamp($1)`, [nowMs + 60_000]);
  await start({ clock: () => nowMs });
  const { rows } = await database.db.query<{ id: number }>(
    'select max(id) as id from notification',
  );
  expect(receiver.received).toEqual([]);
  nowMs += 60_000;
  const { headers } = await receiver.request();
  expect(headers['webhook-id']).toBe(`msg_${rows[0]?.id}`);
});

test.each([
  [`update contact set labels = '{attic}'`, 'other-labels'],
  [`update contact set confirmed_at = null, kind = 'email'`, 'not-confirmed'],
  [`update account set disabled_at = now()`, 'account-disabled'],
])('whom a message is for is judged when it is sent: %s', async (change, reason) => {
  const receiver = await givenReceiver();
  const owner = await given.givenDevice(database.db);
  await addContact(owner, 'webhook', receiver.url);
  const { enqueue, close } = await start();
  await close();
  closing.length = closing.length - 1;
  await database.db.transaction((tx) => enqueue(tx, [given.pushOf(owner)]));
  await database.db.query(change);
  await database.db.query(
    `update notification set kind = c.kind from contact c where c.id = contact_id`,
  );
  await start();
  await expect.poll(() => statesOf(owner), { timeout: 20_000 }).toEqual([['failed', reason]]);
  expect(receiver.received).toEqual([]);
});

test('beyond the messages of a day a webhook is sent nothing, and a mail address still is', async () => {
  const owner = await given.givenDevice(database.db);
  await addContact(owner, 'webhook', 'http://127.0.0.1:9/');
  await addContact(owner, 'email', 'someone@example.org');
  const { enqueue } = await start();
  await database.db.query(
    `insert into message_count values ('webhook', $1, '', (now() at time zone 'UTC')::date, $2)`,
    [owner.accountId, given.quotas.webhooksPerDay],
  );
  await database.db.transaction((tx) => enqueue(tx, pushes(owner, 3)));
  const outcomes = await given.outcomesOf(database.db, owner);
  const beyond = outcomes.filter(({ kind }) => kind === 'webhook');
  expect(beyond).toMatchObject([{ state: 'held-back', reason: 'webhooks-per-day', count: 3 }]);
  expect(outcomes.filter(({ kind }) => kind === 'email')).toHaveLength(3);
});

test('accounts with receivers that hang, however many, leave places to mail', async () => {
  const mail = await startMailServer();
  closing.push(mail.close);
  const hanging = await givenReceiver(() => 'never');
  const email = { smtpUrl: mail.url, from: 'service@example.org', timeoutMs: 5_000 };
  const { enqueue } = await start({ contacts: { email } });
  const other = await given.givenDevice(database.db);
  await addContact(other, 'email', 'someone@example.org');
  // It was served last, so all others come before it.
  await database.db.query(`update contact set served_at = now() + interval '1 hour'`);
  for (let n = 0; n < 30; n += 1) {
    const noisy = await given.givenDevice(database.db);
    await addContact(noisy, 'webhook', `${hanging.url}/${n}`);
    await database.db.transaction((tx) => enqueue(tx, pushes(noisy, 2)));
  }
  await expect.poll(() => hanging.received.length, { timeout: 30_000 }).toBeGreaterThanOrEqual(12);
  await database.db.transaction((tx) => enqueue(tx, [given.pushOf(other)]));
  await mail.mailTo('someone@example.org');
  const { rows } = await database.db.query<{ n: number }>(
    `select count(*) as n from notification where kind = 'webhook' and state = 'queued'`,
  );
  expect(rows[0]?.n).toBeGreaterThan(0);
});

test('what waited for a day is given up, and what is for a contact that is gone', async () => {
  const owner = await given.givenDevice(database.db);
  await addContact(owner, 'email', 'someone@example.org');
  const { enqueue, close } = await start();
  await close();
  closing.length = closing.length - 1;
  const now = Date.now();
  await database.db.transaction((tx) => enqueue(tx, [given.pushOf(owner)]));
  await giveUpOld(database.db, now - 60_000, now);
  expect(await statesOf(owner)).toEqual([['queued', undefined]]);
  await giveUpOld(database.db, now + 60_000, now);
  expect(await statesOf(owner)).toEqual([['failed', 'too-late']]);
  await database.db.transaction((tx) => enqueue(tx, [given.pushOf(owner)]));
  await database.db.query('delete from contact');
  await giveUpOld(database.db, now - 60_000, now);
  expect((await statesOf(owner))[0]).toEqual(['failed', 'contact-gone']);
});

test('what no text of PostgreSQL can hold keeps no message, and no measurement, from being stored', async () => {
  const owner = await given.givenDevice(database.db);
  await addContact(owner, 'email', 'someone@example.org');
  const { enqueue } = await start();
  const configured = { device: {}, module: [{ senses: [{ sId: '0x1', name: 'Warm\0th' }] }] };
  for (const configuration of [
    JSON.stringify(configured),
    '{}',
    '{"module":[{}]}',
    '{"module":3}',
  ]) {
    await database.db.query('update device set configuration = $1::json where id = $2', [
      configuration,
      owner.deviceId,
    ]);
    await database.db.transaction((tx) => enqueue(tx, [given.pushOf(owner)]));
  }
  const bodies = (await given.outcomesOf(database.db, owner)).map(({ body }) => body);
  expect(bodies.map((body) => body.slice(0, 8))).toEqual(Array(4).fill('0x1 21.5'));
});
