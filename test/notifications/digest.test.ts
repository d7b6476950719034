import { expect, test } from 'vitest';
import { slicesOf } from '../../src/lib/text.ts';
import type { Notifications } from '../../src/notifications/notifications.ts';
import * as given from './fixtures.ts';
import { countAlarms } from '../../src/alarms/search.ts';
import { endedOf, firedOf, minuteMs, useAlarms } from '../alarms/notify-world.ts';
import { startHookReceiver } from '../support/hook-receiver.ts';
import { startMailServer } from '../support/smtp.ts';

const { world, closing, start, decide, addContact, usedBy, db } = useAlarms();

async function givenPerson(answer?: Parameters<typeof startMailServer>[0]) {
  const mail = await startMailServer(answer);
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

test('after five messages in ten minutes a person gets one for everything that waits, a minute later, then more seldom', async () => {
  const { mail, owner } = await givenPerson();
  const outbox = await start();
  for (let n = 0; n < 5; n += 1) {
    await decide(outbox, firings(owner, n, 1));
    await expect.poll(() => mail.mails.length, { timeout: 60_000 }).toBe(n + 1);
  }
  await expect.poll(() => gatheringUntil(), { timeout: 60_000 }).toBe(world.nowTs + minuteMs);
  await decide(outbox, firings(owner, 5, 42));
  await db().query(
    `update alarm set closed_at = now(), closed_by = 'cleared' where event_name = 'Alarm 46'`,
  );
  world.nowTs += minuteMs - 1;
  expect(mail.mails).toHaveLength(5);
  world.nowTs += 1;
  const summary = await mail.mailTo(
    'someone@example.org',
    ({ headers }) => headers['subject']?.includes('alarms') === true,
  );
  expect(summary.headers['subject']).toBe('41 alarms at 1 device since 10:00 UTC');
  const names = [45, 44, 43, 42, 41, 40, 39, 38, 37, 36].map((n) => `Cellar: Alarm ${n}`);
  const url = 'http://127.0.0.1/console/alarms';
  const over = ['1 alarm is over:', 'Cellar: Alarm 46'];
  const pages = [`${url}?sort=severity`, `${url}?state=closed&notification=`];
  expect(summary.text).toContain([...names, '… and 31 more', ...over, ...pages].join('\r\n'));
  const outcomes = await given.outcomesOf(db(), owner, (all) =>
    all.every(({ state }) => state === 'sent'),
  );
  expect(outcomes).toHaveLength(47);
  expect(outcomes.filter(({ grouped }) => grouped === true)).toHaveLength(41);
  expect(mail.mails).toHaveLength(6);
  // People were told of the closed one, too.
  const told = await db().query(`select told, count(*)::integer as n from alarm group by told`);
  expect(told.rows).toEqual([{ told: 'told', n: 47 }]);
  // Five mails and a summary.
  expect(await usedBy(owner, 'account')).toBe(6);

  // It goes on: two minutes, then four.
  for (const [n, minutes] of [2, 4].entries()) {
    await expect.poll(() => gatheringUntil()).toBe(world.nowTs + minutes * minuteMs);
    await decide(outbox, firings(owner, 50 + 2 * n, 2));
    world.nowTs += minutes * minuteMs;
    await expect.poll(() => mail.mails.length, { timeout: 60_000 }).toBe(7 + n);
  }
  expect(subjects(mail.mails).slice(6)).toEqual([
    '2 alarms at 1 device since 10:01 UTC',
    '2 alarms at 1 device since 10:03 UTC',
  ]);
  await expect.poll(() => gatheringUntil()).toBe(world.nowTs + 8 * minuteMs);
  world.nowTs += 11 * minuteMs;
  await decide(outbox, firings(owner, 60, 1));
  await mail.mailTo(
    'someone@example.org',
    ({ headers }) => headers['subject'] === 'Cellar: Alarm 60',
  );
  // It got one message in ten minutes, so further ones are no longer gathered.
  await expect.poll(() => gatheringUntil()).toBe(null);
});

test('a flood that comes after another one waits a minute again, even if its first message is a summary', async () => {
  const { mail, owner } = await givenPerson();
  const outbox = await start();
  await decide(outbox, firings(owner, 0, 20));
  await expect.poll(() => gatheringUntil(), { timeout: 60_000 }).toBe(world.nowTs + minuteMs);
  await decide(outbox, firings(owner, 50, 2));
  world.nowTs += minuteMs;
  await expect.poll(() => gatheringUntil(), { timeout: 60_000 }).toBe(world.nowTs + 2 * minuteMs);
  const before = mail.mails.length;
  world.nowTs += 24 * 60 * minuteMs;
  await decide(outbox, firings(owner, 100, 20));
  await expect.poll(() => mail.mails.length, { timeout: 60_000 }).toBeGreaterThan(before);
  await expect.poll(() => gatheringUntil(), { timeout: 60_000 }).toBe(world.nowTs + minuteMs);
  world.nowTs += minuteMs;
  await given.outcomesOf(db(), owner, (all) => all.every(({ state }) => state === 'sent'));
});

test('many that wait at once are one message, the most severe first', async () => {
  const { mail, owner } = await givenPerson();
  await db().query(`update device set labels = '{Berlin}' where id = $1`, [owner.deviceId]);
  world.nowTs = Date.parse('2026-11-22T10:00:00Z');
  const deciding = {
    rules: { quotasOf: () => world.quotas, isAllowedNumber: () => true, isSmsForAll: true },
  };
  const of = (severity: string, evId: number) =>
    firedOf(owner, world.nowTs, {
      evId,
      name: `Alarm ${evId}`,
      actions: { severity, cloud: { sendPush: true } },
    });
  const rules = { ...deciding.rules, ownChannels: ['email'] };
  await decide({ rules } as unknown as Notifications, [
    ...Array.from({ length: 6 }, (_, n) => of('info', 100 + n)),
    ...Array.from({ length: 6 }, (_, n) => of('warning', 200 + n)),
    of('critical', 300),
  ]);
  await start();
  const summary = await mail.mailTo('someone@example.org');
  expect(summary.headers['subject']).toBe('13 alarms at 1 device since 10:00 UTC, 1 critical');
  const warnings = [205, 204, 203, 202, 201, 200].map((n) => `Cellar: Alarm ${n}`);
  expect(summary.text).toContain(
    [
      '1 critical, 6 warnings, 6 info',
      'Berlin: 13',
      'Critical: Cellar: Alarm 300',
      ...warnings,
      'Info: Cellar: Alarm 105',
    ].join('\r\n'),
  );
  expect(summary.text).toContain('/console/alarms?sort=severity&label=Berlin');
  await given.outcomesOf(db(), owner, (all) => all.every(({ state }) => state === 'sent'));
  expect(mail.mails).toHaveLength(1);
});

test('what a summary that was refused for now included is told with the more severe alarm that came since', async () => {
  let isRefused = true;
  const { mail, owner } = await givenPerson(() => (isRefused ? 451 : undefined));
  world.maxAttempts = 8;
  const outbox = await start();
  await decide(outbox, firings(owner, 0, 20));
  const waitsAgain = `select from notification where reason is not null having count(*) = 20`;
  await expect
    .poll(async () => (await db().query(waitsAgain)).rowCount, { timeout: 60_000 })
    .toBe(1);
  isRefused = false;
  const actions = { severity: 'critical', cloud: { sendPush: true } };
  await db().query('update contact set rests_until = ms_to_timestamp($1)', [
    world.nowTs + minuteMs,
  ]);
  await decide(outbox, [firedOf(owner, world.nowTs, { actions, evId: 300, name: 'Fire' })]);
  world.nowTs += minuteMs;
  await given.outcomesOf(db(), owner, (all) => all.every(({ state }) => state === 'sent'));
  expect(subjects(mail.mails)).toEqual(['21 alarms at 1 device since 10:00 UTC, 1 critical']);
  expect(await usedBy(owner, 'account')).toBe(1);
});

test('of 431 alarms at once everybody is told, in one message or another, or it is said that they are not', async () => {
  const { mail, owner } = await givenPerson();
  await addContact(owner, 'email', 'used-up@example.org');
  const outbox = await start();
  const day = '2026-11-22';
  await db().query(
    `insert into message_count (kind, account_id, key, day, used) values ('recipient', $1, $2, $3, 199)`,
    [owner.accountId, 'used-up@example.org', day],
  );
  const { rows: devices } = await db().query<{ id: number; uuid: string }>(
    `insert into device (account_id, connector_id, name, configuration)
     select $1, 1, 'Room ' || n, '{"device": {}, "module": []}' from generate_series(1, 431) as n
     returning id, uuid`,
    [owner.accountId],
  );
  const owners = devices.map(({ id, uuid }) => ({ ...owner, deviceId: id, deviceUuid: uuid }));
  const signals = owners.map((one) => firedOf(one, world.nowTs));
  for (const some of slicesOf(signals, 60)) await decide(outbox, some);
  const waiting = async () =>
    (await db().query(`select from notification where state = 'queued'`)).rowCount;
  // A minute later nobody waits any more.
  await expect.poll(async () => mail.mails.length, { timeout: 60_000 }).toBeGreaterThan(1);
  await expect
    .poll(
      async () => {
        world.nowTs += 2_000;
        return waiting();
      },
      { timeout: 60_000 },
    )
    .toBe(0);
  const { rows: outcomes } = await db().query<{ recipient: string; state: string; n: number }>(
    `select recipient, state, sum(count)::int as n, count(distinct device_id)::int as devices
       from notification group by 1, 2 order by 1, 2`,
  );
  const of = (name: string) => outcomes.filter(({ recipient }) => recipient.startsWith(name));
  expect(of('someone')).toEqual([
    { recipient: 'someone@example.org', state: 'sent', n: 431, devices: 431 },
  ]);
  const said = (mails: typeof mail.mails) =>
    mails.map(({ headers }) =>
      Number(/^(\d+) alarms? at/.exec(headers['subject'] ?? '')?.[1] ?? 1),
    );
  const to = (address: string) => mail.mails.filter((one) => one.to.includes(address));
  const sum = (numbers: number[]) => numbers.reduce((a, b) => a + b, 0);
  expect(sum(said(to('someone@example.org')))).toBe(431);
  expect(to('someone@example.org').length).toBeLessThan(20);
  // The other's last message of the day includes what waited with it, and says that it is the last.
  const [last, ...none] = to('used-up@example.org');
  expect(none).toEqual([]);
  expect(last?.text).toContain('This is the last message until 23 Nov 2026, 00:00 UTC');
  const held = of('used-up').find(({ state }) => state === 'held-back')?.n ?? 0;
  expect(sum(said(to('used-up@example.org'))) + held).toBe(431);
  const { rows: alarms } = await db().query(
    `select told, count(*)::int as n from alarm group by 1`,
  );
  expect(alarms).toEqual([{ told: 'told', n: 431 }]);
});

test('whoever was told by a count is told of the ends by a count: which, how long, how far, and how many are left', async () => {
  const mail = await startMailServer();
  closing.push(mail.close);
  world.email = { smtpUrl: mail.url, from: 'service@example.org', timeoutMs: 5_000 };
  const owner = await given.givenDevice(db());
  await addContact(owner, 'email', 'someone@example.org', { whenOver: true });
  const sense = { sId: '0x1', name: 'Temperature', unit: '°C', decimals: 1 };
  const { rows: devices } = await db().query<{ id: number; uuid: string }>(
    `insert into device (account_id, connector_id, name, labels, configuration)
     select $1, 1, 'Room ' || n, '{cold}', $2::json from generate_series(1, 60) as n
     returning id, uuid`,
    [owner.accountId, JSON.stringify({ device: {}, module: [{ senses: [sense] }] })],
  );
  const rooms = devices.map(({ id, uuid }) => ({ ...owner, deviceId: id, deviceUuid: uuid }));
  world.nowTs = Date.parse('2026-11-22T10:00:00Z');
  const rules = { quotasOf: () => world.quotas, isAllowedNumber: () => true, isSmsForAll: true };
  const early = { rules: { ...rules, ownChannels: ['email'] } } as unknown as Notifications;
  const conditions = [{ ...sense, threshold: {}, thresholds: { isGt: 8 } }];
  await decide(
    early,
    rooms.map((room, n) => {
      const severity = n === 6 ? 'critical' : 'warning';
      const fired = firedOf(room, world.nowTs, {
        actions: { severity, cloud: { sendPush: true } },
      });
      return { ...fired, conditions } as typeof fired;
    }),
  );
  const outbox = await start();
  const begun = '60 alarms at 60 devices since 10:00 UTC, 1 critical';
  await expect.poll(() => subjects(mail.mails)).toEqual([begun]);
  await given.outcomesOf(db(), { ...owner, ...rooms[0] }, (all) =>
    all.every(({ state }) => state === 'sent'),
  );

  world.nowTs += 64 * minuteMs;
  await decide(outbox, [firedOf(owner, world.nowTs)]);
  const alone = 'Cellar: Too warm';
  await expect.poll(() => subjects(mail.mails)).toEqual([begun, alone]);
  await given.outcomesOf(db(), owner, (all) => all.every(({ state }) => state === 'sent'));
  world.nowTs += minuteMs;
  for (const some of slicesOf(rooms.slice(0, 55), 20))
    await decide(
      outbox,
      some.map((room) => endedOf(room, world.nowTs)),
    );
  await db().query(
    `update alarm set extreme = json_build_array(json_build_object('sId', '0x1', 'val', 9.74, 'ts', 1))`,
  );
  // Who was told of one alone hears of its end at once, and the others go on waiting for each other.
  await decide(outbox, [endedOf(owner, world.nowTs)]);
  const told = [begun, alone, `${alone}: over`];
  await expect.poll(() => subjects(mail.mails)).toEqual(told);
  world.nowTs += minuteMs;
  const over = '55 alarms are over, 5 are not yet';
  await expect.poll(() => subjects(mail.mails)).toEqual([...told, over]);
  const text = mail.mails[3]?.text ?? '';
  const lines = text.split('\r\n');
  const at = lines.indexOf('1 critical, 54 warnings');
  expect(lines[at + 1]).toBe('cold: 55');
  expect(lines[at + 2]).toBe('Critical: Room 7: Too warm, 1 hour 5 minutes, up to 9.7 °C');
  for (const line of lines.slice(at + 3, at + 12))
    expect(line).toMatch(/^Room \d+: Too warm, 1 hour 5 minutes, up to 9\.7 °C$/);
  expect(lines[at + 12]).toBe('… and 45 more');
  const [, shown] = /alarms\?state=closed&notification=(\d+)$/.exec(lines[at + 13] ?? '') ?? [];
  const search = { accountId: owner.accountId, within: null, state: 'closed' as const };
  expect(await countAlarms(db(), { ...search, notification: Number(shown) })).toBe(55);
  const others = { ...search, accountId: owner.accountId + 1, notification: Number(shown) };
  expect(await countAlarms(db(), others)).toBe(0);

  const last = rooms.at(-1);
  if (!last) throw new Error('There are no rooms.');
  await decide(outbox, [endedOf(last, world.nowTs)]);
  // Summaries come more seldom now, at most ten minutes apart.
  world.nowTs += 10 * minuteMs;
  const lone = '1 alarm is over, 4 are not yet';
  await expect.poll(() => subjects(mail.mails)).toEqual([...told, over, lone]);
  expect(mail.mails[4]?.text).toContain('Room 60: Too warm, 1 hour 6 minutes');
  // Five mails, however many alarms they are about.
  await expect.poll(() => usedBy(owner, 'account')).toBe(5);
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
  const sms = given.scriptedDriver([...Array.from({ length: 5 }, () => 'ok' as const), 'never']);
  world.drivers = { ...world.drivers, sms: sms.driver };
  const owner = await given.givenDevice(db());
  const outbox = await start();
  const actions = { sms: { text: 'Come home', phoneNumber: ['+4201'] } };
  const asked = Array.from({ length: 13 }, (_, n) =>
    firedOf(owner, world.nowTs, { actions, evId: 100 + n, name: `Alarm ${100 + n}` }),
  );
  await decide(outbox, asked);
  const isSent = ({ state }: { state: string }) => state === 'sent';
  await given.outcomesOf(db(), owner, (all) => all.filter(isSent).length === 5);
  world.nowTs += minuteMs;
  const outcomes = await given.outcomesOf(db(), owner, (all) =>
    all.every(({ state }) => state !== 'queued'),
  );
  expect(sms.sent).toHaveLength(6);
  expect(sms.sent[5]?.body).toMatch(
    /^8 alarms at 1 device since 10:00 UTC\nCellar: Alarm 1\d\d\n(Cellar: Alarm 1\d\d\n?)+$/,
  );
  expect(outcomes.slice(0, 8)).toMatchObject(
    Array.from({ length: 8 }, () => ({ state: 'failed', reason: 'provider-busy' })),
  );
  const { rows } = await db().query(
    `select count(*) as n from alarm where told = 'withdrawn' and device_id = $1`,
    [owner.deviceId],
  );
  expect(rows).toEqual([{ n: 8 }]);
});
