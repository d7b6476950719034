import { afterEach, beforeAll, afterAll, expect, test } from 'vitest';
import type { Driver, NotificationLog } from '../../src/notifications/channels/channel.ts';
import { startNotifications, type Notifications } from '../../src/notifications/notifications.ts';
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

async function start(
  driver: Driver,
  maxAttempts = 3,
  { log = given.silent, ...config }: { log?: NotificationLog; dailyQuota?: number } = {},
): Promise<Started> {
  outbox = await startNotifications({
    onAlarms: () => undefined,
    contacts: given.contacts,
    db: database.db,
    connectionString: database.url,
    config: NotificationSettings.parse({ pollIntervalMs: 50, maxAttempts, ...config }),
    quotasOf: () => given.quotas,
    isSmsForAll: false,
    log,
    clock,
    drivers: { push: driver, sms: driver },
  });
  return given.withEnqueue(outbox, clock);
}

test('the account sees a reason, the operator sees what the provider said', async () => {
  const logged: [object, string][] = [];
  const log = { ...given.silent, warn: (...line: [object, string]) => void logged.push(line) };
  const { enqueue } = await start(given.scriptedDriver(['never']).driver, 3, { log });
  const owner = await given.givenDevice(database.db);
  await enqueue(database.db, [given.smsOf(owner, '+421')]);
  const outcomes = await given.outcomesOf(database.db, owner, ([o]) => o?.state === 'failed');
  expect(JSON.stringify(outcomes)).not.toContain('said never');
  expect(logged).toMatchObject([[{ why: 'said never' }, expect.any(String)]]);
});

test('a message that waits for a refused number is not sent', async () => {
  const { driver, sent } = given.scriptedDriver();
  const { enqueue, close } = await start(given.scriptedDriver().driver);
  await close();
  const owner = await given.givenDevice(database.db);
  await enqueue(database.db, [given.smsOf(owner, '+421'), given.smsOf(owner, '+422')]);
  await database.db.query(
    `update notification set recipient = 'whatsapp:+421' where device_id = $1 and recipient = '+421'`,
    [owner.deviceId],
  );
  await start(driver);
  const outcomes = await given.outcomesOf(database.db, owner, (all) =>
    all.every(({ state }) => state !== 'queued'),
  );
  expect(outcomes).toMatchObject([{ state: 'sent' }, { state: 'failed', reason: 'number-form' }]);
  expect(sent.map(({ recipient }) => recipient)).toEqual(['+422']);
});

test('the log says that dailyQuota sets messagesPerDay', async () => {
  const logged: [object, string][] = [];
  const log = { ...given.silent, info: (...line: [object, string]) => void logged.push(line) };
  await start(given.scriptedDriver().driver, 3, { log, dailyQuota: 2 });
  const line = expect.objectContaining({ messagesPerDay: 2 }) as object;
  expect(logged).toContainEqual([line, expect.stringContaining('dailyQuota')]);
});
