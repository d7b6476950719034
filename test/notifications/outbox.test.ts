import { createServer, type AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { Driver, LookupAll } from '../../src/notifications/channels/channel.ts';
import type { Received } from '../support/hook-receiver.ts';
import { startMailServer } from '../support/smtp.ts';
import { pushes, useContacts } from './contact-fixtures.ts';
import * as given from './fixtures.ts';

const { db, closing, start, givenReceiver, addContact, statesOf } = useContacts();

const sumOf = (counts: ReadonlyMap<string, number>) =>
  [...counts.values()].reduce((sum, n) => sum + n, 0);

const titleIn = ({ body }: Received) =>
  (JSON.parse(body) as { data: { title: string } }).data.title;

test(
  "hanging receivers of one account do not delay another account's mail",
  { timeout: 120_000 },
  async () => {
    const mail = await startMailServer();
    closing.push(mail.close);
    const hanging = await givenReceiver(() => 'never');
    const email = { smtpUrl: mail.url, from: 'service@example.org', timeoutMs: 5_000 };
    const { enqueue } = await start({ contacts: { email } });
    const [noisy, other] = [await given.givenDevice(db()), await given.givenDevice(db())];
    for (let n = 0; n < 10; n += 1) await addContact(noisy, 'webhook', `${hanging.url}/${n}`);
    await addContact(other, 'email', 'someone@example.org');
    await db().transaction((tx) => enqueue(tx, pushes(noisy, 1_000)));
    await expect.poll(() => hanging.received.length, { timeout: 60_000 }).toBe(2);
    await db().transaction((tx) => enqueue(tx, [given.pushOf(other)]));
    const told = await mail.mailTo('someone@example.org');
    // The link to the device stands below what happened.
    expect(told.text).toMatch(/\n\r?\n?http:\/\/127\.0\.0\.1\/console\/devices\/[\da-f-]{36}/);
    // It did not wait behind those ten thousand, of which two at a time hang for seconds.
    expect(hanging.received.length).toBeLessThan(1_000);
    // All are written by and by.
    const count = async () => {
      const { rows } = await db().query<{ n: number }>(
        `select count(*) as n from notification where account_id = $1`,
        [noisy.accountId],
      );
      return rows[0]?.n;
    };
    await expect.poll(count, { timeout: 60_000 }).toBe(10_000);
  },
);

/**
 * Receivers that never answer, under any number of host names: how many connections are open, and were open at once.
 */
async function startHanging() {
  const seen = { open: 0, most: 0, closed: 0 };
  const server = createServer((socket) => {
    socket.on('error', () => undefined).resume();
    seen.open += 1;
    seen.most = Math.max(seen.most, seen.open);
    socket.on('close', () => {
      seen.open -= 1;
      seen.closed += 1;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => new Promise((resolve) => server.close(resolve)));
  const { port } = server.address() as AddressInfo;
  const lookupAll: LookupAll = (_, callback) =>
    callback(null, [{ address: '127.0.0.1', family: 4 }]);
  return { seen, lookupAll, urlOf: (name: string) => `http://${name}.example:${port}/` };
}

/** Sets how the last deliveries to all webhooks of these accounts ended. */
const lastReason = async (owners: given.Owner[], reason: string | null) =>
  void (await db().query(
    `update contact set last_at = now(), last_reason = $2 where account_id = any ($1)`,
    [owners.map(({ accountId }) => accountId), reason],
  ));

describe('hanging receivers of 90 accounts', () => {
  async function givenNoisy(urlOf: (n: number) => string, count = 90) {
    const noisy: given.Owner[] = [];
    for (let n = 0; n < count; n += 1) {
      const owner = await given.givenDevice(db());
      await addContact(owner, 'webhook', urlOf(n));
      noisy.push(owner);
    }
    return noisy;
  }

  test.each([
    ['that were never tried', undefined, 90],
    ['that answered the last time', null, 90],
    ['that nobody answered the last time, in few places', 'no-answer', 16],
  ])('%s: no other webhook waits for them', async (_, reason, places) => {
    const { seen, lookupAll, urlOf } = await startHanging();
    const noisy = await givenNoisy((n) => urlOf(`hangs-${n}`));
    if (reason !== undefined) await lastReason(noisy, reason);
    const receiver = await givenReceiver();
    const other = await given.givenDevice(db());
    await addContact(other, 'webhook', receiver.url);
    await lastReason([other], null);
    const { enqueue } = await start({ contacts: { lookupAll } });
    await db().transaction((tx) =>
      enqueue(
        tx,
        noisy.flatMap((one) => [given.pushOf(one), given.pushOf(one)]),
      ),
    );
    await expect.poll(() => seen.open, { timeout: 60_000 }).toBe(places);
    await db().transaction((tx) => enqueue(tx, [given.pushOf(other)]));
    await receiver.request();
    // None has been closed yet: the service would close them 5 s after their beginning, or 1.5 s.
    expect([seen.most, seen.closed]).toEqual([places, 0]);
  });

  test('at one host: it gets few requests at a time, whoever sends them', async () => {
    const { seen, lookupAll, urlOf } = await startHanging();
    const noisy = await givenNoisy((n) => `${urlOf('hangs')}${n}`);
    const { enqueue } = await start({ contacts: { lookupAll } });
    await db().transaction((tx) =>
      enqueue(
        tx,
        noisy.map((one) => given.pushOf(one)),
      ),
    );
    await expect.poll(() => seen.open, { timeout: 60_000 }).toBe(16);
    // The next ones follow when the first have ended.
    await expect.poll(() => seen.closed, { timeout: 60_000 }).toBeGreaterThanOrEqual(16);
    expect(seen.most).toBe(16);
  });
});

test('hanging receivers do not delay another receiver of their own account', async () => {
  const { seen, lookupAll, urlOf } = await startHanging();
  const owner = await given.givenDevice(db());
  for (let n = 0; n < 4; n += 1) await addContact(owner, 'webhook', urlOf(`hangs-${n}`));
  await lastReason([owner], 'no-answer');
  const receiver = await givenReceiver();
  await addContact(owner, 'webhook', receiver.url);
  const { enqueue } = await start({ contacts: { lookupAll } });
  await db().transaction((tx) => enqueue(tx, [given.pushOf(owner)]));
  await receiver.request();
  expect(seen.closed).toBe(0);
});

test('a receiver that asks for a pause gets nothing until it is over', async () => {
  let aheadMs = 0;
  const receiver = await givenReceiver(() =>
    aheadMs === 0 ? { status: 429, headers: { 'retry-after': '900' } } : { status: 204 },
  );
  const owner = await given.givenDevice(db());
  await addContact(owner, 'webhook', receiver.url);
  const { enqueue } = await start({ clock: () => Date.now() + aheadMs });
  await db().transaction((tx) => enqueue(tx, pushes(owner, 3)));
  const rested = async () => {
    const { rows } = await db().query<{ least: number | null }>(
      `select extract(epoch from rests_until - now())::integer as least from contact`,
    );
    return rows[0]?.least ?? 0;
  };
  await expect.poll(rested).toBeGreaterThan(800);
  expect(receiver.received).toHaveLength(1);
  aheadMs = 901_000;
  await expect.poll(() => receiver.received.length, { timeout: 60_000 }).toBe(4);
  await expect
    .poll(async () => (await statesOf(owner)).map(([state]) => state))
    .toEqual(['sent', 'sent', 'sent']);
});

test('a hanging SMS provider delays neither mail nor push messages of others', async () => {
  const mail = await startMailServer();
  closing.push(mail.close);
  const email = { smtpUrl: mail.url, from: 'service@example.org', timeoutMs: 5_000 };
  const asked = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const sms: Driver = {
    name: 'hanging',
    send: async () => {
      asked.resolve();
      await release.promise;
    },
    close: async () => {},
  };
  const push = given.scriptedDriver();
  const { enqueue } = await start({ contacts: { email }, drivers: { push: push.driver, sms } });
  const many = Array.from({ length: 15 }, (_, n) => n);
  for (const n of many) {
    const noisy = await given.givenDevice(db());
    await db().transaction((tx) => enqueue(tx, [given.smsOf(noisy, `+4207${n}`)]));
  }
  await asked.promise;
  const other = await given.givenDevice(db(), ['phone']);
  await addContact(other, 'email', 'someone@example.org');
  await db().transaction((tx) => enqueue(tx, [given.pushOf(other)]));
  await mail.mailTo('someone@example.org');
  await expect.poll(() => push.sent.map(({ recipient }) => recipient)).toEqual(['phone']);
  release.resolve();
});

test('a recipient gets one message at a time, in order; an account gets two', async () => {
  const most = { all: 0, one: 0 };
  const open = new Map<string, number>();
  const receiver = await givenReceiver(async ({ url }) => {
    open.set(url, (open.get(url) ?? 0) + 1);
    most.one = Math.max(most.one, open.get(url) ?? 0);
    most.all = Math.max(most.all, sumOf(open));
    // A slow receiver, so that overlapping deliveries would be seen.
    for (let looks = 0; looks < 20 && sumOf(open) < 2; looks += 1) await delay(20);
    await delay(20);
    open.set(url, (open.get(url) ?? 1) - 1);
    return { status: 204 };
  });
  const owner = await given.givenDevice(db());
  for (const path of ['a', 'b', 'c', 'd'])
    await addContact(owner, 'webhook', `${receiver.url}/${path}`);
  const { enqueue } = await start();
  await db().transaction((tx) => enqueue(tx, pushes(owner, 10)));
  await expect.poll(() => receiver.received.length, { timeout: 60_000 }).toBe(40);
  expect(most.one).toBe(1);
  expect(most.all).toBe(2);
  for (const path of ['/a', '/b', '/c', '/d']) {
    const titles = receiver.received.filter(({ url }) => url === path).map(titleIn);
    expect(titles).toEqual(pushes(owner, 10).map((_, n) => `Cellar: number ${n}`));
  }
});

test('a failed message goes before later ones about its alarm, and delays no others', async () => {
  let aheadMs = 0;
  const receiver = await givenReceiver(({ body }) =>
    body.includes('opened') && aheadMs === 0 ? { status: 500 } : { status: 204 },
  );
  const owner = await given.givenDevice(db());
  await addContact(owner, 'webhook', receiver.url);
  const { enqueue } = await start({ clock: () => Date.now() + aheadMs });
  await db().transaction(async (tx) => {
    const pushed = ['opened', 'closed', 'of another alarm'];
    await enqueue(
      tx,
      pushed.map((title) => given.pushOf(owner, title)),
    );
    await tx.query(
      `update notification set alarm_id = case when title like '%of another alarm' then 2 else 1 end,
                               announcement = 1`,
    );
  });
  const titles = () => receiver.received.map((one) => titleIn(one).replace('Cellar: ', ''));
  await expect.poll(titles).toContain('of another alarm');
  // Both outcomes are stored at the same time by the clock.
  const ended = `select 1 from notification where state = 'sent' or error is not null`;
  await expect.poll(async () => (await db().query(ended)).rows).toHaveLength(2);
  aheadMs = 60_000;
  await expect.poll(() => receiver.received.length).toBe(4);
  expect(titles()).toEqual(['opened', 'of another alarm', 'opened', 'closed']);
  // The receiver has the message before its outcome is stored.
  await expect
    .poll(async () => (await statesOf(owner)).map(([state]) => state))
    .toEqual(['sent', 'sent', 'sent']);
});

test('a recipient that failed five times in a row rests 15 minutes', async () => {
  let nowTs = Date.now();
  let isBack = false;
  const receiver = await givenReceiver(() => ({ status: isBack ? 204 : 500 }));
  const owner = await given.givenDevice(db());
  await addContact(owner, 'webhook', receiver.url);
  const { enqueue } = await start({ clock: () => nowTs });
  await db().transaction((tx) => enqueue(tx, [given.pushOf(owner)]));
  for (let attempt = 1; attempt <= 5; attempt += 1) {
    await expect.poll(() => receiver.received.length, { timeout: 60_000 }).toBe(attempt);
    await expect.poll(failuresOf(owner), { timeout: 60_000 }).toBe(attempt);
    nowTs += 180_000;
  }
  const [{ rests } = { rests: 0 }] = (
    await db().query<{ rests: number }>('select rests_until as rests from contact')
  ).rows;
  // It failed three minutes ago by this clock.
  expect(rests - nowTs).toBe(900_000 - 180_000);
  nowTs = rests - 1;
  await db().transaction((tx) => enqueue(tx, [given.pushOf(owner)]));
  // Another account's message goes through meanwhile, which shows that messages were claimed.
  const other = await given.givenDevice(db());
  await addContact(other, 'webhook', `${receiver.url}/other`);
  isBack = true;
  await db().transaction((tx) => enqueue(tx, [given.pushOf(other)]));
  await receiver.request(({ url }) => url === '/other');
  expect(receiver.received.filter(({ url }) => url === '/')).toHaveLength(5);
  nowTs = rests + 1;
  await expect
    .poll(() => statesOf(owner), { timeout: 60_000 })
    .toEqual([
      ['sent', undefined],
      ['sent', undefined],
    ]);
  expect(await failuresOf(owner)()).toBe(0);
});

const failuresOf =
  ({ accountId }: given.Owner) =>
  async () => {
    const { rows } = await db().query<{ failures: number }>(
      'select failures from contact where account_id = $1 and busy_until is null',
      [accountId],
    );
    return rows[0]?.failures;
  };

test('deliveries of a process that ended are repeated by another one, with the same webhook-id', async () => {
  let nowTs = Date.now();
  const receiver = await givenReceiver();
  const owner = await given.givenDevice(db());
  await addContact(owner, 'webhook', receiver.url);
  const { enqueue, close } = await start({ clock: () => nowTs });
  await close();
  await db().transaction((tx) => enqueue(tx, [given.pushOf(owner)]));
  await db().query(`update contact set busy_until = ms_to_timestamp($1)`, [nowTs + 60_000]);
  await start({ clock: () => nowTs });
  const { rows } = await db().query<{ id: number }>('select max(id) as id from notification');
  expect(receiver.received).toEqual([]);
  nowTs += 60_000;
  const { headers, body } = await receiver.request();
  const { cause } = given.event;
  const { puId, stId, evId } = cause.engine;
  expect(JSON.parse(body)).toEqual({
    type: 'notice',
    timestamp: expect.any(Number),
    data: {
      deviceAuthUuid: owner.deviceUuid,
      deviceName: 'Cellar',
      puId,
      stId,
      evId,
      title: 'Cellar: Too warm',
      body: '0x1 21.5 (1 Jan 1970, 00:00 UTC)',
      cause,
    },
  });
  expect(headers['webhook-id']).toBe(`msg_${rows[0]?.id}`);
});

test('accounts with hanging receivers, however many, leave places for mail', async () => {
  const mail = await startMailServer();
  closing.push(mail.close);
  const hanging = await givenReceiver(() => 'never');
  const email = { smtpUrl: mail.url, from: 'service@example.org', timeoutMs: 5_000 };
  const { enqueue } = await start({ contacts: { email } });
  const other = await given.givenDevice(db());
  await addContact(other, 'email', 'someone@example.org');
  // Served last, so all others come first.
  await db().query(`update contact set served_at = now() + interval '1 hour'`);
  for (let n = 0; n < 30; n += 1) {
    const noisy = await given.givenDevice(db());
    await addContact(noisy, 'webhook', `${hanging.url}/${n}`);
    await db().transaction((tx) => enqueue(tx, pushes(noisy, 2)));
  }
  await expect.poll(() => hanging.received.length, { timeout: 60_000 }).toBeGreaterThanOrEqual(12);
  await db().transaction((tx) => enqueue(tx, [given.pushOf(other)]));
  await mail.mailTo('someone@example.org');
  const { rows } = await db().query<{ n: number }>(
    `select count(*) as n from notification where kind = 'webhook' and state = 'queued'`,
  );
  expect(rows[0]?.n).toBeGreaterThan(0);
});

test('a recipient locked by a clock a year ahead is free once the clock is right', async () => {
  const nowTs = Date.now();
  const receiver = await givenReceiver();
  const owner = await given.givenDevice(db());
  await addContact(owner, 'webhook', receiver.url);
  const { enqueue } = await start({ clock: () => nowTs });
  await db().query(
    `update contact
        set busy_until = ms_to_timestamp($1), rests_until = ms_to_timestamp($1), gathers_until = ms_to_timestamp($1)`,
    [nowTs + 365 * 86_400_000],
  );
  await db().transaction((tx) => enqueue(tx, [given.pushOf(owner)]));
  expect(JSON.parse((await receiver.request()).body)).toMatchObject({ type: 'notice' });
});
