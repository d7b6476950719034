import { expect, test } from 'vitest';
import { dropPlanned, putOffPlanned } from '../../src/notifications/outbox.ts';
import * as given from '../notifications/fixtures.ts';
import { startHookReceiver, type HookReply } from '../support/hook-receiver.ts';
import { startMailServer } from '../support/smtp.ts';
import { endedOf, firedOf, minuteMs, useAlarms } from './notify-world.ts';

const { world, closing, start, decide, addContact, findAlarm, usedBy, db } = useAlarms();

async function givenReceiver(reply?: () => HookReply | Promise<HookReply>) {
  const receiver = await startHookReceiver(reply);
  closing.push(receiver.close);
  return receiver;
}

async function givenMail() {
  const mail = await startMailServer();
  closing.push(mail.close);
  world.email = { smtpUrl: mail.url, from: 'service@example.org', timeoutMs: 5_000 };
  return mail;
}

type Payload = { type: string; data: { alarmId: number; title: string; body: string } };
const payloadOf = ({ body }: { body: string }) => JSON.parse(body) as Payload;

test('a contact with afterMs is notified with that delay, if the alarm is still open and not acknowledged', async () => {
  const receiver = await givenReceiver();
  const owner = await given.givenDevice(db());
  await addContact(owner, 'webhook', `${receiver.url}/boss`, { afterMs: 30 * minuteMs });
  const outbox = await start();
  const [event] = await decide(outbox, [firedOf(owner, world.nowTs)]);
  expect(event).toMatchObject({ notified: true });
  const { id: alarmId } = await findAlarm(owner);
  world.nowTs += 30 * minuteMs;
  const escalated = payloadOf(await receiver.request());
  expect(escalated).toMatchObject({ type: 'alarm.escalated', data: { alarmId } });
  expect(receiver.received).toHaveLength(1);
});

test('an acknowledgement drops planned messages, which then count for no limit', async () => {
  const owner = await given.givenDevice(db());
  const receiver = await givenReceiver();
  await addContact(owner, 'webhook', receiver.url, { afterMs: 30 * minuteMs });
  const outbox = await start();
  await decide(outbox, [firedOf(owner, world.nowTs)]);
  expect(await usedBy(owner, 'webhook')).toBe(1);
  await db().transaction(async (tx) => dropPlanned(tx, [(await findAlarm(owner)).id]));
  expect(await usedBy(owner, 'webhook')).toBe(0);
  expect(await given.outcomesOf(db(), owner)).toEqual([]);
});

test('planned messages are dropped when the alarm closes, and postponed by a mute', async () => {
  const owner = await given.givenDevice(db());
  const receiver = await givenReceiver();
  await addContact(owner, 'webhook', receiver.url, { afterMs: 30 * minuteMs });
  const outbox = await start();
  await decide(outbox, [firedOf(owner, world.nowTs)]);
  const untilMs = world.nowTs + 45 * minuteMs;
  await putOffPlanned(db(), [owner.deviceId], untilMs);
  const { rows } = await db().query<{ due: number }>('select due_at as due from notification');
  expect(rows).toEqual([{ due: untilMs }]);
  await decide(outbox, [endedOf(owner, world.nowTs)]);
  expect(await given.outcomesOf(db(), owner)).toEqual([]);
});

test('contacts with whenOver that were notified hear that it is over; others do not', async () => {
  const mail = await givenMail();
  const owner = await given.givenDevice(db());
  const [over, not] = [await givenReceiver(), await givenReceiver()];
  await addContact(owner, 'webhook', over.url, { whenOver: true });
  await addContact(owner, 'webhook', not.url);
  await addContact(owner, 'email', 'someone@example.org', { whenOver: true });
  const outbox = await start();
  await decide(outbox, [firedOf(owner, world.nowTs)]);
  await mail.mailTo(
    'someone@example.org',
    ({ headers }) => headers['subject'] === 'Cellar: Too warm',
  );
  // A message under way would count as lost when its time is over.
  const statesNow = async () => (await given.outcomesOf(db(), owner)).map(({ state }) => state);
  await expect.poll(statesNow).toEqual(['sent', 'sent', 'sent']);
  world.nowTs += 5 * minuteMs;
  await decide(outbox, [endedOf(owner, world.nowTs)]);
  const ended = await mail.mailTo(
    'someone@example.org',
    ({ headers }) => headers['subject'] === 'Cellar: Too warm: over',
  );
  expect(ended.text).toContain('Over since 10:05 UTC.');
  const closed = await over.request(({ body }) => body.includes('alarm.closed'));
  expect(payloadOf(closed)).toMatchObject({
    type: 'alarm.closed',
    data: { closedBy: 'cleared', title: 'Cellar: Too warm: over' },
  });
  expect(not.received.map((one) => payloadOf(one).type)).toEqual(['alarm.opened']);
});

test('an alarm that a profile closes is reported to webhooks only', async () => {
  const mail = await givenMail();
  const owner = await given.givenDevice(db());
  const receiver = await givenReceiver();
  await addContact(owner, 'webhook', receiver.url, { whenOver: true });
  await addContact(owner, 'email', 'someone@example.org', { whenOver: true });
  const outbox = await start();
  const fired = firedOf(owner, world.nowTs);
  await decide(outbox, [fired]);
  await mail.mailTo('someone@example.org');
  await decide(outbox, [{ kind: 'profile', device: fired.device, arrivedTs: world.nowTs }]);
  const { data } = payloadOf(await receiver.request(({ body }) => body.includes('alarm.closed')));
  expect(data).toMatchObject({ closedBy: 'profile' });
  const { rows } = await db().query(`select kind from notification where type = 'closed'`);
  expect(rows).toEqual([{ kind: 'webhook' }]);
});

test('queued messages are sent when the alarm is over, and say so', async () => {
  const owner = await given.givenDevice(db());
  const receiver = await givenReceiver();
  await addContact(owner, 'webhook', receiver.url);
  const { close } = await start();
  await close();
  const outbox = await start();
  await outbox.close();
  await decide(outbox, [firedOf(owner, world.nowTs)]);
  world.nowTs += 5 * minuteMs;
  await decide(outbox, [endedOf(owner, world.nowTs)]);
  world.nowTs += minuteMs;
  await start();
  const { data } = payloadOf(await receiver.request());
  expect(data.body).toContain('\nOver since 10:05 UTC.');
});

test("queued messages say that the alarm was acknowledged meanwhile, in the account's language", async () => {
  const owner = await given.givenDevice(db());
  await db().query(
    `update account set language = 'de', time_zone = 'Europe/Berlin' where id = $1`,
    [owner.accountId],
  );
  const receiver = await givenReceiver();
  await addContact(owner, 'webhook', receiver.url);
  const outbox = await start();
  await outbox.close();
  await decide(outbox, [firedOf(owner, world.nowTs)]);
  await db().query('update alarm set acknowledged_at = ms_to_timestamp($1)', [
    world.nowTs + minuteMs,
  ]);
  await start();
  const { data } = payloadOf(await receiver.request());
  expect(data.body).toContain('\nQuittiert: 11:01 MEZ.');
});
