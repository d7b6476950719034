import { afterAll, beforeAll, expect, test } from 'vitest';
import { Actions, type NotifyResult } from '../../src/contract/actions.ts';
import { type Ask, notify } from '../../src/notifications/enqueue.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { event, givenDevice, outcomesOf, quotas, type Owner } from './fixtures.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

const dayMs = 86_400_000;
type NotifyOptions = Parameters<typeof notify>[2];
const options: NotifyOptions = {
  quotasOf: () => quotas,
  isAllowedNumber: (number) => !number.startsWith('+1900'),
  isSmsForAll: false,
  ownChannels: ['push', 'sms', 'email', 'webhook'],
  nowTs: 40 * dayMs,
};

let alarms = 0;
const askOf = ({ accountId, deviceId, deviceUuid }: Owner, actions: object): Ask => ({
  type: 'opened',
  device: { accountId, deviceId, uuid: deviceUuid },
  event,
  actions: Actions.parse(actions),
  name: 'Too warm',
  alarmId: ++alarms,
  announcement: 1,
  sinceTs: 1_000,
});
const push = { cloud: { sendPush: true } };
const smsTo = (...phoneNumber: string[]) => ({ sms: { text: 'Come home', phoneNumber } });
const told = (queued: number, planned = 0): NotifyResult => ({
  queued,
  planned,
  notNotified: null,
});
const nobody = (notNotified: NotifyResult['notNotified']): NotifyResult => ({
  queued: 0,
  planned: 0,
  notNotified,
});
const tellAll = (asks: Ask[], own: Partial<NotifyOptions> = {}) =>
  database.db.transaction((tx) => notify(tx, asks, { ...options, ...own }));

async function addContact(owner: Owner, address: string, afterMs = 0, labels: string[] = []) {
  await database.db.query(
    `insert into contact (account_id, kind, address, address_normal, place, after_ms, labels)
     values ($1, 'webhook', $2, $2, 0, $3, $4)`,
    [owner.accountId, address, afterMs, labels],
  );
}

test('each ask returns the number of its messages, in order', async () => {
  const phone = await givenDevice(database.db, ['token-aaaa', 'token-bbbb']);
  const none = await givenDevice(database.db);
  const answers = await tellAll([
    askOf(none, push),
    askOf(phone, push),
    askOf(none, smsTo('+4201', '+4202')),
    askOf(none, {}),
  ]);
  expect(answers).toEqual([nobody('no-recipient'), told(2), told(2), nobody('no-recipient')]);
});

test('a contact with afterMs is planned once for an alarm, and never for a notice', async () => {
  const owner = await givenDevice(database.db);
  await addContact(owner, 'http://127.0.0.1/later', 600_000);
  const ask = askOf(owner, push);
  expect(await tellAll([ask])).toEqual([told(0, 1)]);
  const [planned] = await outcomesOf(database.db, owner);
  expect(planned).toMatchObject({ state: 'planned', kind: 'webhook' });
  const { rows } = await database.db.query<{ due: number; type: string; alarm: number }>(
    'select due_at as due, type, alarm_id as alarm from notification where device_id = $1',
    [owner.deviceId],
  );
  expect(rows).toEqual([{ due: options.nowTs + 600_000, type: 'escalated', alarm: ask.alarmId }]);
  expect(await tellAll([{ ...ask, announcement: 2 }])).toEqual([nobody('no-recipient')]);
  const notice = { ...askOf(owner, push), type: 'notice' as const, alarmId: null };
  expect(await tellAll([notice])).toEqual([nobody('no-recipient')]);
});

test('a contact with other labels is no recipient', async () => {
  const owner = await givenDevice(database.db);
  await addContact(owner, 'http://127.0.0.1/labels', 0, ['cellar']);
  expect(await tellAll([askOf(owner, push)])).toEqual([nobody('no-recipient')]);
});

test('held-back takes precedence over not-allowed, and that over not-configured', async () => {
  const full = {
    quotasOf: () => ({ ...quotas, messagesPerDay: 1 }),
    ownChannels: ['push'] as const,
  };
  const owner = await givenDevice(database.db, ['token-aaaa'], false);
  const both = { ...push, ...smsTo('+4201') };
  expect(await tellAll([askOf(owner, both)], full)).toEqual([told(1)]);
  expect(await tellAll([askOf(owner, both)], full)).toEqual([nobody('held-back')]);
  const none = { ownChannels: [] };
  const other = await givenDevice(database.db, ['token-aaaa'], false);
  expect(await tellAll([askOf(other, both)], none)).toEqual([nobody('not-allowed')]);
  expect(await tellAll([askOf(other, smsTo('+19001'))])).toEqual([nobody('not-allowed')]);
  expect(await tellAll([askOf(other, push)], none)).toEqual([nobody('not-configured')]);
  const allowed = await givenDevice(database.db);
  expect(await tellAll([askOf(allowed, smsTo('+4201'))], none)).toEqual([nobody('not-configured')]);
  expect(await tellAll([askOf(allowed, smsTo('nobody'))])).toEqual([nobody('no-recipient')]);
});

test('if the account may send no messages, each ask with a recipient is held back', async () => {
  const quotasOf = () => ({ ...quotas, messagesPerDay: 0, webhooksPerDay: 0 });
  const phone = await givenDevice(database.db, ['token-aaaa']);
  const none = await givenDevice(database.db);
  const asks = [askOf(phone, push), askOf(phone, push), askOf(none, push)];
  expect(await tellAll(asks, { quotasOf })).toEqual([
    nobody('held-back'),
    nobody('held-back'),
    nobody('no-recipient'),
  ]);
});

test('a channel counts as configured if another process has it; an SMS log counts too', async () => {
  const owner = await givenDevice(database.db, ['token-aaaa']);
  const asks = [askOf(owner, push), askOf(owner, smsTo('+4209'))];
  const elsewhere = { ownChannels: [], nowTs: options.nowTs + dayMs };
  expect(await tellAll(asks, elsewhere)).toEqual([
    nobody('not-configured'),
    nobody('not-configured'),
  ]);
  await database.db.query(
    `insert into delivering_process (process, channels, seen_at)
     values (gen_random_uuid(), '{push,sms-log}', ms_to_timestamp($1))`,
    [elsewhere.nowTs - 60_000],
  );
  expect(await tellAll(asks, elsewhere)).toEqual([told(1), told(1)]);
});
