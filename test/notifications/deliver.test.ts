import { afterEach, beforeAll, afterAll, expect, onTestFinished, test } from 'vitest';
import type { Driver } from '../../src/notifications/channels/channel.ts';
import { startNotifications, type Notifications } from '../../src/notifications/notifications.ts';
import { forgetOutcomes } from '../../src/notifications/routes.ts';
import { NotificationSettings } from '../../src/notifications/settings.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import * as given from './fixtures.ts';

let database: TestDatabase;
let outbox: Notifications | undefined;

beforeAll(async () => {
  database = await testDatabase();
});
afterEach(async () => {
  await outbox?.close();
  outbox = undefined;
});
afterAll(() => database.drop());

const clock = () => 86_400_000;
type Started = ReturnType<typeof given.withEnqueue>;

async function start(driver: Driver, maxAttempts = 3): Promise<Started> {
  outbox = await startNotifications({
    onAlarms: () => undefined,
    contacts: given.contacts,
    db: database.db,
    connectionString: database.url,
    config: NotificationSettings.parse({ pollIntervalMs: 50, maxAttempts }),
    quotasOf: () => given.quotas,
    isSmsForAll: false,
    log: given.silent,
    clock,
    drivers: { push: driver, sms: driver },
  });
  return given.withEnqueue(outbox, clock);
}

test('a message is delivered after the commit, and its outcome is recorded', async () => {
  const { driver, sent } = given.scriptedDriver();
  const { enqueue } = await start(driver);
  const owner = await given.givenDevice(database.db, ['token-aaaa']);
  await database.db.transaction((tx) =>
    enqueue(tx, [given.pushOf(owner), given.smsOf(owner, '+42')]),
  );
  const outcomes = await given.outcomesOf(database.db, owner, (all) =>
    all.every((o) => o.state === 'sent'),
  );
  expect(outcomes).toMatchObject([
    { kind: 'sms', state: 'sent', attempts: 1, via: 'scripted', body: 'Cellar: Come home' },
    { kind: 'push', state: 'sent', attempts: 1, via: 'scripted', title: 'Cellar: Too warm' },
  ]);
  const push = sent.find((message) => message.recipient === 'token-aaaa');
  expect(push).toMatchObject({
    title: 'Cellar: Too warm',
    body: '0x1 21.5 (1 Jan 1970, 00:00 UTC)',
    data: { deviceAuthUuid: owner.deviceUuid, pId: 'p', puId: 1, stId: 2, evId: 3, ts: 1_000 },
  });
});

test('a temporary failure is retried later, and given up in the end', async () => {
  const { driver, sent } = given.scriptedDriver(['again', 'ok', 'again', 'again', 'again']);
  const { enqueue } = await start(driver);
  const owner = await given.givenDevice(database.db);
  const settled = async (state: string, attempts: number) => {
    const [outcome] = await given.outcomesOf(
      database.db,
      owner,
      (all) => all[0]?.attempts === attempts && all[0].via === 'scripted' && all[0].state === state,
    );
    return outcome;
  };
  /**
   * Waits for the outcome of the next attempt. Skips the back-off repeatedly, because the end of an attempt sets a new
   * one.
   */
  const settledAfter = async (attempts: number, state: string) => {
    const skip = () => void given.skipBackOff(database.db, owner, attempts);
    const timer = setInterval(skip, 50);
    onTestFinished(() => clearInterval(timer));
    const outcome = await settled(state, attempts + 1);
    clearInterval(timer);
    return outcome;
  };

  await enqueue(database.db, [given.smsOf(owner, '+421')]);
  expect(await settled('queued', 1)).toMatchObject({
    error: 'The provider is not accepting messages at the moment.',
    reason: 'provider-busy',
  });
  const { rows } = await database.db.query<{ waits: boolean }>(
    `select bool_and(due_at > ms_to_timestamp($1)) as waits from notification where state = 'queued'`,
    [clock()],
  );
  expect(rows[0]?.waits).toBe(true);
  await settledAfter(1, 'sent');

  await enqueue(database.db, [given.smsOf(owner, '+422')]);
  await settled('queued', 1);
  await settledAfter(1, 'queued');
  const outcome = await settledAfter(2, 'failed');
  expect(outcome).toMatchObject({
    error: 'The provider is not accepting messages at the moment.',
    reason: 'provider-busy',
    attempts: 3,
  });
  expect(sent).toHaveLength(5);
});

test('a permanent failure is not retried', async () => {
  const { driver, sent } = given.scriptedDriver(['never']);
  const { enqueue } = await start(driver);
  const owner = await given.givenDevice(database.db);
  await enqueue(database.db, [given.smsOf(owner, '+42')]);
  const outcomes = await given.outcomesOf(database.db, owner, ([o]) => o?.state === 'failed');
  expect(outcomes).toMatchObject([
    { attempts: 1, error: 'The provider is not accepting messages at the moment.' },
  ]);
  expect(sent).toHaveLength(1);
});

test('a message that waits for a disabled account is not sent, and fails with that reason', async () => {
  const { driver, sent } = given.scriptedDriver();
  const { enqueue } = await start(driver);
  const owner = await given.givenDevice(database.db, ['phone']);
  await database.db.query('update account set disabled_at = now() where id = $1', [
    owner.accountId,
  ]);
  await enqueue(database.db, [given.smsOf(owner, '+423'), given.pushOf(owner)]);
  const outcomes = await given.outcomesOf(
    database.db,
    owner,
    (all) => all.length === 2 && all.every(({ state }) => state === 'failed'),
  );
  const ended = { reason: 'account-disabled', error: 'The operator has disabled the account.' };
  expect(outcomes).toMatchObject([ended, ended]);
  expect(sent).toEqual([]);
});

test('a dead token is removed from the account; the others stay in order', async () => {
  const { driver } = given.scriptedDriver(['gone']);
  const { enqueue } = await start(driver);
  const owner = await given.givenDevice(database.db, ['dead']);
  // In one transaction: a message may be delivered as soon as it is committed.
  await database.db.transaction(async (tx) => {
    await enqueue(tx, [given.pushOf(owner)]);
    await tx.query(`update account set apn = $2 where id = $1`, [
      owner.accountId,
      JSON.stringify([{ token: 'one' }, { token: 'dead' }, { token: 'two' }]),
    ]);
  });
  await given.outcomesOf(database.db, owner, ([o]) => o?.state === 'failed');
  const { rows } = await database.db.query('select apn from account where id = $1', [
    owner.accountId,
  ]);
  expect(rows).toEqual([{ apn: [{ token: 'one' }, { token: 'two' }] }]);
});

const addToken = (accountId: number, token: string) =>
  database.db.query(
    `insert into push_token (account_id, token, session_id, added_at)
     values ($1, $2, gen_random_uuid(), now())`,
    [accountId, token],
  );

test('a token that a session added gets each message once, and is removed when it is dead', async () => {
  const { driver, sent } = given.scriptedDriver(['gone', 'gone']);
  const { enqueue } = await start(driver);
  const owner = await given.givenDevice(database.db, ['one', 'both']);
  await addToken(owner.accountId, 'both');
  await addToken(owner.accountId, 'of a session');
  await database.db.transaction((tx) => enqueue(tx, [given.pushOf(owner)]));
  await given.outcomesOf(
    database.db,
    owner,
    (all) => all.length === 3 && all.every(({ state }) => state !== 'queued'),
  );
  expect(sent.map(({ recipient }) => recipient).toSorted()).toEqual([
    'both',
    'of a session',
    'one',
  ]);
  const left = await database.db.query<{ token: string }>(
    `select token from push_token where account_id = $1
      union select entry ->> 'token' from account, jsonb_array_elements(apn) as e (entry) where id = $1`,
    [owner.accountId],
  );
  expect(left.rows.map(({ token }) => token)).toEqual([sent[2]?.recipient]);
});

test('a message that waits for a token whose session ended is not sent', async () => {
  const owner = await given.givenDevice(database.db);
  await addToken(owner.accountId, 'logged out');
  const { enqueue, close } = await start(given.scriptedDriver().driver);
  await close();
  await database.db.transaction((tx) => enqueue(tx, [given.pushOf(owner)]));
  await database.db.query('delete from push_token where account_id = $1', [owner.accountId]);
  const { driver, sent } = given.scriptedDriver();
  await start(driver);
  const outcomes = await given.outcomesOf(database.db, owner, ([o]) => o?.state === 'failed');
  expect(outcomes).toMatchObject([{ reason: 'contact-gone' }]);
  expect(sent).toEqual([]);
});

test('messages queued while no process delivered are delivered after the next start', async () => {
  const owner = await given.givenDevice(database.db);
  const { enqueue, close } = await start(given.scriptedDriver().driver);
  await close();
  await enqueue(database.db, [given.smsOf(owner, '+421')]);
  const { driver, sent } = given.scriptedDriver();
  await start(driver);
  await given.outcomesOf(database.db, owner, ([o]) => o?.state === 'sent');
  expect(sent).toMatchObject([{ recipient: '+421' }]);
});

test('closing waits for the delivery under way', async () => {
  const reached = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const { enqueue, close } = await start({
    name: 'slow',
    send: async () => {
      reached.resolve();
      await release.promise;
    },
    close: async () => {},
  });
  const owner = await given.givenDevice(database.db);
  await enqueue(database.db, [given.smsOf(owner, '+421')]);
  await reached.promise;
  const closed = close();
  release.resolve();
  await closed;
  expect(await given.outcomesOf(database.db, owner)).toMatchObject([{ state: 'sent' }]);
});

test('a worker whose connections were cut continues, and can be closed without them', async () => {
  const { driver, sent } = given.scriptedDriver();
  const { enqueue, close } = await start(driver);
  const owner = await given.givenDevice(database.db);
  const cutOff = () =>
    database.db.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()`,
    );
  await cutOff();
  await enqueue(database.db, [given.smsOf(owner, '+421')]);
  await given.outcomesOf(database.db, owner, ([o]) => o?.state === 'sent');
  expect(sent).toHaveLength(1);
  await cutOff();
  await close();
});

test('old outcomes are deleted, queued messages are not', async () => {
  const { enqueue, close } = await start(given.scriptedDriver().driver);
  await close();
  const owner = await given.givenDevice(database.db);
  await enqueue(database.db, [given.smsOf(owner, '+421'), given.smsOf(owner, '+422')]);
  const [second] = await given.outcomesOf(database.db, owner);
  await database.db.query(`update notification set state = 'sent' where id = $1`, [
    second?.notificationId,
  ]);
  await forgetOutcomes(database.db, clock() + 1);
  expect(await given.outcomesOf(database.db, owner)).toMatchObject([{ state: 'queued' }]);
});

test('a message that only a log took does not count as sent', async () => {
  const { driver } = given.scriptedDriver();
  const { enqueue } = await start({ ...driver, name: 'log', isLog: true });
  const owner = await given.givenDevice(database.db);
  await enqueue(database.db, [given.smsOf(owner, '+42')]);
  const outcomes = await given.outcomesOf(database.db, owner, ([o]) => o?.state !== 'queued');
  expect(outcomes).toMatchObject([{ state: 'logged', via: 'log', attempts: 1 }]);
});
