import { expect, test } from 'vitest';
import * as given from './fixtures.ts';
import { firedOf, minuteMs, useAlarms } from '../alarms/notify-world.ts';
import { startHookReceiver } from '../support/hook-receiver.ts';
import { startMailServer } from '../support/smtp.ts';

const { world, closing, start, decide, addContact, db } = useAlarms();

async function givenPerson() {
  const mail = await startMailServer();
  closing.push(mail.close);
  world.email = { smtpUrl: mail.url, from: 'service@example.org', timeoutMs: 5_000 };
  const owner = await given.givenDevice(db());
  await addContact(owner, 'email', 'someone@example.org');
  return { mail, owner };
}

const firings = (owner: given.Owner, from: number, count: number) =>
  Array.from({ length: count }, (_, n) =>
    firedOf(owner, world.nowTs, { evId: 100 + from + n, name: `Alarm ${from + n}` }),
  );

const subjects = (mails: { headers: Record<string, string> }[]) =>
  mails.map(({ headers }) => headers['subject']);

test('after ten messages in ten minutes a person gets one message for everything that waits, every ten minutes', async () => {
  const { mail, owner } = await givenPerson();
  const outbox = await start();
  await decide(outbox, firings(owner, 0, 47));
  await expect.poll(() => mail.mails.length, { timeout: 60_000 }).toBe(10);
  await expect.poll(() => gatheringUntil(), { timeout: 60_000 }).toBe(world.nowTs + 10 * minuteMs);
  world.nowTs += 10 * minuteMs - 1;
  expect(mail.mails).toHaveLength(10);
  await db().query(
    `update alarm set closed_at = now(), closed_by = 'cleared' where event_name = 'Alarm 46'`,
  );
  world.nowTs += 1;
  const gathered = await mail.mailTo(
    'someone@example.org',
    ({ headers }) => headers['subject']?.includes('more alarms') === true,
  );
  expect(gathered.headers['subject']).toBe('36 more alarms are open');
  const names = [45, 44, 43, 42, 41, 40, 39, 38, 37, 36].map((n) => `Cellar: Alarm ${n}`);
  expect(gathered.text).toContain([...names, '…', '1 alarm is over'].join('\r\n'));
  const outcomes = await given.outcomesOf(db(), owner, (all) =>
    all.every(({ state }) => state === 'sent'),
  );
  expect(outcomes).toHaveLength(47);
  expect(outcomes.filter(({ grouped }) => grouped === true)).toHaveLength(36);
  expect(mail.mails).toHaveLength(11);

  await decide(outbox, firings(owner, 50, 1));
  world.nowTs += 10 * minuteMs;
  await mail.mailTo(
    'someone@example.org',
    ({ headers }) => headers['subject'] === 'Cellar: Alarm 50',
  );
  expect(subjects(mail.mails)).toHaveLength(12);
  // It got one message in ten minutes, so further ones are no longer grouped.
  await expect.poll(() => gatheringUntil()).toBe(null);
});

async function gatheringUntil(): Promise<number | null | undefined> {
  const { rows } = await db().query<{ until: number | null }>(
    `select gathers_until as until from contact where kind = 'email' and busy_until is null`,
  );
  return rows[0]?.until;
}

test('webhooks get every message separately', async () => {
  const receiver = await startHookReceiver();
  closing.push(receiver.close);
  const owner = await given.givenDevice(db());
  await addContact(owner, 'webhook', receiver.url);
  const outbox = await start();
  await decide(outbox, firings(owner, 0, 25));
  await expect.poll(() => receiver.received.length, { timeout: 60_000 }).toBe(25);
});

test('SMS to one number are grouped too, and fail together', async () => {
  const sms = given.scriptedDriver([...Array.from({ length: 10 }, () => 'ok' as const), 'never']);
  world.drivers = { ...world.drivers, sms: sms.driver };
  const owner = await given.givenDevice(db());
  const outbox = await start();
  const actions = { sms: { text: 'Come home', phoneNumber: ['+4201'] } };
  const asked = Array.from({ length: 13 }, (_, n) =>
    firedOf(owner, world.nowTs, { actions, evId: 100 + n, name: `Alarm ${100 + n}` }),
  );
  await decide(outbox, asked);
  const isSent = ({ state }: { state: string }) => state === 'sent';
  await given.outcomesOf(db(), owner, (all) => all.filter(isSent).length === 10);
  world.nowTs += 10 * minuteMs;
  const outcomes = await given.outcomesOf(db(), owner, (all) =>
    all.every(({ state }) => state !== 'queued'),
  );
  expect(sms.sent).toHaveLength(11);
  expect(sms.sent[10]?.body).toMatch(
    /^3 more alarms are open\nCellar: Alarm 1\d\d\nCellar: Alarm 1\d\d\nCellar: Alarm 1\d\d$/,
  );
  expect(outcomes.slice(0, 3)).toMatchObject(
    Array.from({ length: 3 }, () => ({ state: 'failed', reason: 'provider-busy' })),
  );
  const { rows } = await db().query(
    `select count(*) as n from alarm where told = 'withdrawn' and device_id = $1`,
    [owner.deviceId],
  );
  expect(rows).toEqual([{ n: 3 }]);
});
