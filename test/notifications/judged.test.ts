import { expect, test } from 'vitest';
import { giveUpOld } from '../../src/notifications/outbox.ts';
import { pushes, useContacts } from './contact-fixtures.ts';
import * as given from './fixtures.ts';

const { db, start, givenReceiver, addContact, statesOf } = useContacts();

test.each([
  [`update contact set labels = '{attic}'`, 'other-labels'],
  [`update contact set confirmed_at = null, kind = 'email'`, 'not-confirmed'],
  [`update account set disabled_at = now()`, 'account-disabled'],
])('recipients are checked when a message is sent: %s', async (change, reason) => {
  const receiver = await givenReceiver();
  const owner = await given.givenDevice(db());
  await addContact(owner, 'webhook', receiver.url);
  const { enqueue, close } = await start();
  await close();
  await db().transaction((tx) => enqueue(tx, [given.pushOf(owner)]));
  await db().query(change);
  await db().query(`update notification set kind = c.kind from contact c where c.id = contact_id`);
  await start();
  await expect.poll(() => statesOf(owner), { timeout: 60_000 }).toEqual([['failed', reason]]);
  expect(receiver.received).toEqual([]);
});

test('over the daily limit a webhook gets nothing, while a mail address still does', async () => {
  const owner = await given.givenDevice(db());
  await addContact(owner, 'webhook', 'http://127.0.0.1:9/');
  await addContact(owner, 'email', 'someone@example.org');
  const { enqueue } = await start();
  await db().query(
    `insert into message_count values ('webhook', $1, '', (now() at time zone 'UTC')::date, $2)`,
    [owner.accountId, given.quotas.webhooksPerDay],
  );
  await db().transaction((tx) => enqueue(tx, pushes(owner, 3)));
  const outcomes = await given.outcomesOf(db(), owner);
  const beyond = outcomes.filter(({ kind }) => kind === 'webhook');
  expect(beyond).toMatchObject([{ state: 'held-back', reason: 'webhooks-per-day', count: 3 }]);
  expect(outcomes.filter(({ kind }) => kind === 'email')).toHaveLength(3);
});

test('messages that waited a day are given up, and so are messages to contacts that are gone', async () => {
  const owner = await given.givenDevice(db());
  await addContact(owner, 'email', 'someone@example.org');
  const { enqueue, close } = await start();
  await close();
  const now = Date.now();
  await db().transaction((tx) => enqueue(tx, [given.pushOf(owner)]));
  await giveUpOld(db(), { beforeMs: now - 60_000, nowTs: now });
  expect(await statesOf(owner)).toEqual([['queued', undefined]]);
  await giveUpOld(db(), { beforeMs: now + 60_000, nowTs: now });
  expect(await statesOf(owner)).toEqual([['failed', 'too-late']]);
  await db().transaction((tx) => enqueue(tx, [given.pushOf(owner)]));
  await db().query('delete from contact');
  await giveUpOld(db(), { beforeMs: now - 60_000, nowTs: now });
  expect((await statesOf(owner))[0]).toEqual(['failed', 'contact-gone']);
});

test('text that PostgreSQL cannot store prevents neither messages nor measurements from being stored', async () => {
  const owner = await given.givenDevice(db());
  await addContact(owner, 'email', 'someone@example.org');
  const { enqueue } = await start();
  const configured = { device: {}, module: [{ senses: [{ sId: '0x1', name: 'Warm\0th' }] }] };
  for (const configuration of [
    JSON.stringify(configured),
    '{}',
    '{"module":[{}]}',
    '{"module":3}',
  ]) {
    await db().query('update device set configuration = $1::json where id = $2', [
      configuration,
      owner.deviceId,
    ]);
    await db().transaction((tx) => enqueue(tx, [given.pushOf(owner)]));
  }
  const bodies = (await given.outcomesOf(db(), owner)).map(({ body }) => body);
  expect(bodies.map((body) => body.slice(0, 8))).toEqual(Array(4).fill('0x1 21.5'));
});
