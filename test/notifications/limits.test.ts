import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { enqueueNotifications } from '../../src/notifications/enqueue.ts';
import { createNumberRule, type EnqueueOptions } from '../../src/notifications/recipients.ts';
import { forgetCounts } from '../../src/notifications/routes.ts';
import type { NewNotification } from '../../src/contract/actions.ts';
import type { MessageQuotas } from '../../src/notifications/channels/channel.ts';
import { openTestDatabase, testDatabase, type TestDatabase } from '../support/database.ts';
import { givenDevice, outcomesOf, pushOf, quotas, smsOf } from './fixtures.ts';

const dayMs = 86_400_000;
let database: TestDatabase;
/** Each test has a day of its own, because some limits are for the whole installation. */
let today = 40;

beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

const within = (own: Partial<MessageQuotas>, rest: Partial<EnqueueOptions> = {}) => ({
  quotasOf: () => ({ ...quotas, ...own }),
  isAllowedNumber: createNumberRule(['+', '!+1900']),
  isSmsForAll: false,
  nowTs: today * dayMs,
  ...rest,
});
const enqueue = (asked: Iterable<NewNotification>, options: EnqueueOptions) =>
  database.db.transaction((tx) => enqueueNotifications(tx, asked, options));
const numbers = (count: number) => Array.from({ length: count }, (_, n) => `+4207${1_000 + n}`);
const due = `notification where state = 'queued' and due_at is not null`;
const count = async (sql: string) =>
  (await database.db.query<{ n: number }>(`select count(*) as n from ${sql}`)).rows[0]?.n ?? 0;

type Case = [string, Partial<MessageQuotas>, (n: number) => string, number, string];
const cases: Case[] = [
  ['the account', { smsPerDay: 3 }, (n) => `+42070${n}`, 3, 'sms-per-day'],
  ['a number', { smsPerNumber: 2 }, () => '+420 123-456', 2, 'sms-per-number'],
  ['the installation', { smsPerInstallation: 4 }, (n) => `+42080${n}`, 4, 'sms-per-installation'],
];

describe.each(cases)('the SMS of %s on a day', (_whose, own, numberOf, limit, reason) => {
  test('are held back over the limit in one row; the last one sent says so; the next day starts anew', async () => {
    today += 10;
    const owner = await givenDevice(database.db);
    const jobs = await count(due);
    for (const n of [0, 1, 2]) {
      const asked = [0, 1].map((m) => smsOf(owner, numberOf(2 * n + m)));
      await enqueue(asked, within(own));
    }
    const outcomes = await outcomesOf(database.db, owner);
    const queued = outcomes.filter(({ state }) => state === 'queued').toReversed();
    expect(queued).toHaveLength(limit);
    expect(queued.map(({ body }) => body.includes('last message until'))).toEqual(
      queued.map((_, n) => n === limit - 1),
    );
    const held = outcomes.filter(({ state }) => state === 'held-back');
    expect(held).toHaveLength(1);
    expect(held[0]).toMatchObject({ reason, kind: 'sms' });
    expect(held[0]?.count ?? 1).toBe(6 - limit);
    expect(await count(due)).toBe(jobs + limit);

    today += 1;
    await enqueue([smsOf(owner, numberOf(0))], within(own));
    expect((await outcomesOf(database.db, owner))[0]).toMatchObject({ state: 'queued' });
  });

  test('are not exceeded by two processes at once', async () => {
    today += 10;
    const owner = await givenDevice(database.db);
    const others = [openTestDatabase(database.url), openTestDatabase(database.url)];
    try {
      await Promise.all(
        Array.from({ length: 30 }, async (_, n) => {
          await others[n % 2]?.transaction((tx) =>
            enqueueNotifications(tx, [smsOf(owner, numberOf(n))], within(own)),
          );
        }),
      );
    } finally {
      await Promise.all(others.map((db) => db.close()));
    }
    const outcomes = await outcomesOf(database.db, owner);
    expect(outcomes.filter(({ state }) => state === 'queued')).toHaveLength(limit);
    const held = outcomes.filter(({ state }) => state === 'held-back');
    expect(held).toMatchObject([{ reason, count: 30 - limit }]);
  });
});

test('pushes have a limit for the account and one for each recipient', async () => {
  today += 10;
  const owner = await givenDevice(database.db, ['token-aaaa', 'token-bbbb']);
  const other = await givenDevice(database.db, ['token-aaaa']);
  const own = within({ messagesPerRecipient: 2, messagesPerDay: 5 });
  for (let n = 0; n < 4; n += 1) await enqueue([pushOf(owner)], own);
  await enqueue([pushOf(other)], own);
  const outcomes = await outcomesOf(database.db, owner);
  // What waits is sent with the last message that counts.
  expect(outcomes.map(({ state }) => state)).toEqual(Array.from({ length: 8 }, () => 'queued'));
  const theirs = `notification where account_id = ${owner.accountId}`;
  expect(await count(`${theirs} and counted_on is not null`)).toBe(4);
  await database.db.query(`update notification set state = 'sent' where account_id = $1`, [
    owner.accountId,
  ]);
  await enqueue([pushOf(owner)], own);
  expect((await outcomesOf(database.db, owner))[0]).toMatchObject({
    state: 'held-back',
    reason: 'messages-per-recipient',
    count: 2,
  });
  // The same token in another account is another recipient: nobody can use up somebody else's limit.
  expect(await outcomesOf(database.db, other)).toMatchObject([{ state: 'queued' }]);

  await database.db.query('update account set apn = $2 where id = $1', [
    owner.accountId,
    JSON.stringify([{ token: 'token-cccc' }, { token: 'token-dddd' }]),
  ]);
  await enqueue([pushOf(owner)], own);
  expect((await outcomesOf(database.db, owner)).map(({ reason }) => reason)).toContain(
    'messages-per-day',
  );
  expect(await count(`${theirs} and counted_on is not null`)).toBe(5);
});

test('an account may have limits of its own', async () => {
  today += 10;
  const [own, other] = [
    await givenDevice(database.db, ['token-aaaa']),
    await givenDevice(database.db, ['token-aaaa']),
  ];
  const quotasOf = (accountId: number) =>
    accountId === own.accountId
      ? { ...quotas, messagesPerDay: 3, messagesPerRecipient: 3, smsPerDay: 4 }
      : { ...quotas, messagesPerDay: 1, smsPerDay: 2 };
  for (let n = 0; n < 5; n += 1) {
    const asked = [own, other].flatMap((owner) => [pushOf(owner), smsOf(owner, `+42077${n}`)]);
    await enqueue(asked, within({}, { quotasOf }));
  }
  const queuedOf = async (owner: typeof own) => {
    const outcomes = await outcomesOf(database.db, owner);
    const queued = outcomes.filter(({ state }) => state === 'queued').map(({ kind }) => kind);
    return ['push', 'sms'].map((kind) => queued.filter((of) => of === kind).length);
  };
  expect([await queuedOf(own), await queuedOf(other)]).toEqual([
    [3, 4],
    [1, 2],
  ]);
});

test.each([
  ['whatsapp:+420777123456', 'number-form'],
  ['client:admin', 'number-form'],
  ['0777123456', 'number-form'],
  ['+4207771234567890', 'number-form'],
  ['+1 (900) 555-0100', 'number-refused'],
])('no SMS is sent to %s: %s', async (number, reason) => {
  today += 10;
  const owner = await givenDevice(database.db);
  const asked = [smsOf(owner, number), smsOf(owner, number), smsOf(owner, '+420 777 123-456')];
  await enqueue(asked, within({}));
  const outcomes = await outcomesOf(database.db, owner);
  expect(outcomes.filter(({ state }) => state === 'failed')).toMatchObject([{ reason, count: 2 }]);
  expect(
    await count(`notification where device_id = ${owner.deviceId} and recipient = '+420777123456'`),
  ).toBe(1);
});

test('an account without permission sends none, unless all accounts may', async () => {
  today += 10;
  const owner = await givenDevice(database.db, [], false);
  await enqueue([smsOf(owner, '+420777'), smsOf(owner, '+420778')], within({}));
  expect(await outcomesOf(database.db, owner)).toMatchObject([
    { state: 'failed', reason: 'sms-not-allowed', count: 2 },
  ]);
  await enqueue([smsOf(owner, '+420777')], within({}, { isSmsForAll: true }));
  expect((await outcomesOf(database.db, owner)).map(({ state }) => state)).toContain('queued');
});

test('38,400 SMS requested at once become 20 rows and one more, and delay nobody else', async () => {
  today += 10;
  const owner = await givenDevice(database.db);
  const all = numbers(10);
  function* asked() {
    for (let n = 0; n < 3_840; n += 1) for (const number of all) yield smsOf(owner, number);
  }
  const jobs = await count(due);
  await enqueue(asked(), within({}));
  await enqueue(asked(), within({}));
  expect(await count(due)).toBe(jobs + 20);
  expect(await count(`notification where device_id = ${owner.deviceId}`)).toBe(21);
  const held = (await outcomesOf(database.db, owner)).find(({ state }) => state === 'held-back');
  expect(held).toMatchObject({ reason: 'sms-per-day', count: 2 * 38_400 - 20 });
});

test('an account that has used up its SMS waits for no lock', async () => {
  today += 10;
  const [owner, other] = [await givenDevice(database.db), await givenDevice(database.db)];
  await enqueue([smsOf(owner, '+420777')], within({ smsPerDay: 1 }));
  const counted = Promise.withResolvers<void>();
  const over = Promise.withResolvers<void>();
  const counting = database.db.transaction(async (tx) => {
    await enqueueNotifications(tx, [smsOf(other, '+420777')], within({}));
    counted.resolve();
    await over.promise;
  });
  await counted.promise;
  await enqueue([smsOf(owner, '+420777')], within({ smsPerDay: 1 }));
  over.resolve();
  await counting;
  expect((await outcomesOf(database.db, owner)).map(({ state }) => state).toSorted()).toEqual([
    'held-back',
    'queued',
  ]);
});

test('the counters of the day before yesterday are deleted', async () => {
  today += 10;
  const owner = await givenDevice(database.db);
  await enqueue([smsOf(owner, '+420777')], within({}));
  await forgetCounts(database.db, (today + 1) * dayMs);
  expect(await count('message_count')).toBe(3);
  await forgetCounts(database.db, (today + 2) * dayMs);
  expect(await count('message_count')).toBe(0);
});
