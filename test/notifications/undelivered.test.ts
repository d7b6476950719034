import { expect, test } from 'vitest';
import { DeliveryError } from '../../src/notifications/channels/channel.ts';
import { createUndeliveredLog } from '../../src/notifications/log.ts';
import { restAfterFailuresMs } from '../../src/notifications/outbox.ts';
import { useContacts } from './contact-fixtures.ts';
import * as given from './fixtures.ts';

const { db, start, givenReceiver, addContact } = useContacts();

/** A log that records its warnings. */
function keptLog() {
  const lines: object[] = [];
  return { lines, log: { ...given.silent, warn: (line: object) => void lines.push(line) } };
}

test('a host of webhooks that is down is one line, and at the end one more with the number of attempts', async () => {
  const { lines, log } = keptLog();
  const receiver = await givenReceiver(() => ({ status: 500 }));
  const owner = await given.givenDevice(db());
  for (let n = 0; n < 30; n += 1) await addContact(owner, 'webhook', `${receiver.url}/${n}`);
  const nowTs = Date.now();
  const { enqueue, close } = await start({ clock: () => nowTs, log });
  await db().transaction((tx) => enqueue(tx, [given.pushOf(owner)]));
  const failed = async () => {
    const { rows } = await db().query<{ n: number }>(
      'select count(*)::integer as n from contact where failures = 1 and busy_until is null',
    );
    return rows[0]?.n;
  };
  await expect.poll(failed, { timeout: 60_000 }).toBe(30);
  const said = {
    event: 'notification.undelivered',
    via: 'webhook',
    receiver: new URL(receiver.url).host,
    reason: 'receiver-refused',
    why: 'Answered 500',
    notificationId: expect.any(Number) as number,
    again: true,
  };
  expect(lines).toEqual([{ ...said, count: 1 }]);
  await close();
  expect(lines).toEqual([
    { ...said, count: 1 },
    { ...said, count: 29 },
  ]);
});

function given15Minutes() {
  const { lines, log } = keptLog();
  const time = { nowTs: 1_000_000 };
  const undelivered = createUndeliveredLog(log.warn, () => time.nowTs);
  const fail = (changes: Partial<Parameters<typeof undelivered.note>[0]> = {}) =>
    undelivered.note({
      about: { notificationId: 7 },
      host: null,
      via: 'apns',
      failure: new DeliveryError('again', 'provider-login', 'Answered 403'),
      again: true,
      ...changes,
    });
  const counts = () => lines.splice(0).map((line) => (line as { count: number }).count);
  return { lines, time, fail, counts, ...undelivered };
}

test('after 15 minutes the next line counts those before it, in whichever direction the clock was set', () => {
  const { time, fail, counts } = given15Minutes();
  for (let n = 0; n < 3; n += 1) fail();
  time.nowTs += restAfterFailuresMs - 1;
  fail();
  expect(counts()).toEqual([1]);
  time.nowTs += 1;
  fail();
  expect(counts()).toEqual([4]);
  time.nowTs -= 86_400_000;
  fail();
  expect(counts()).toEqual([1]);
});

test('counts that no attempt follows are written after a rest, once', () => {
  const { time, fail, counts, flush } = given15Minutes();
  for (let n = 0; n < 3; n += 1) fail();
  flush();
  expect(counts()).toEqual([1]);
  time.nowTs += restAfterFailuresMs;
  flush();
  expect(counts()).toEqual([2]);
  flush({ isEnd: true });
  expect(counts()).toEqual([]);
});

test('each reason of a provider has a line of its own; a fault of the service has its stack', () => {
  const { fail, lines } = given15Minutes();
  const failure = new DeliveryError('again', 'fault', 'cannot read x');
  fail();
  fail({ failure });
  fail();
  expect(lines).toMatchObject([
    { reason: 'provider-login', why: 'Answered 403' },
    { reason: 'fault', err: failure },
  ]);
});

test('any number of receivers that accounts choose writes a bounded number of lines', () => {
  const { time, lines, fail, counts, flush } = given15Minutes();
  for (let n = 0; n < 3_000; n += 1) fail({ via: 'webhook', host: `host-${n}.example.org` });
  expect(counts()).toHaveLength(1_000);
  flush();
  expect(counts()).toEqual([]);
  time.nowTs += restAfterFailuresMs;
  flush();
  expect(lines).toEqual([{ count: 2_000 }]);
});
