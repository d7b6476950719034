import { describe, expect, test } from 'vitest';
import { wakeAlarms } from '../../src/alarms/decide.ts';
import * as given from '../notifications/fixtures.ts';
import { startHookReceiver } from '../support/hook-receiver.ts';
import { firedOf, minuteMs, useAlarms } from './notify-world.ts';

const { world, closing, start, decide, runTimer, addContact, findAlarm, db } = useAlarms();

async function givenWebhook(owner: given.Owner) {
  const receiver = await startHookReceiver();
  closing.push(receiver.close);
  await addContact(owner, 'webhook', receiver.url);
  return receiver;
}

describe('the timer announces an alarm that nobody could be notified of', () => {
  test('once there is a recipient', async () => {
    const owner = await given.givenDevice(db());
    const outbox = await start();
    const [event] = await decide(outbox, [firedOf(owner, world.nowTs)]);
    expect(event).toMatchObject({ notified: false, notNotified: 'no-recipient' });
    const receiver = await givenWebhook(owner);
    world.nowTs += minuteMs;
    await runTimer(outbox);
    expect(await findAlarm(owner)).toMatchObject({ told: 'none', notNotified: 'no-recipient' });
    await wakeAlarms(db(), owner.accountId, world.nowTs);
    await runTimer(outbox);
    const { body } = await receiver.request();
    expect(JSON.parse(body)).toMatchObject({ type: 'alarm.opened' });
    await expect.poll(() => findAlarm(owner)).toMatchObject({ told: 'told', notNotified: null });
  });

  test('once the day whose quota was used up is over', async () => {
    world.quotas = { ...given.quotas, webhooksPerDay: 1 };
    const owner = await given.givenDevice(db());
    const receiver = await givenWebhook(owner);
    const outbox = await start();
    const other = firedOf(owner, world.nowTs, { evId: 4 });
    const [first, event] = await decide(outbox, [other, firedOf(owner, world.nowTs)]);
    expect(first).toMatchObject({ notified: true });
    expect(event).toMatchObject({ notified: false, notNotified: 'held-back' });
    const isSent = ({ state }: { state: string }) => state === 'sent';
    await given.outcomesOf(db(), owner, (all) => all.some(isSent));
    world.nowTs += 15 * minuteMs;
    await runTimer(outbox);
    expect(await findAlarm(owner)).toMatchObject({ told: 'none', notNotified: 'held-back' });
    world.nowTs += 24 * 60 * minuteMs;
    await runTimer(outbox);
    await expect.poll(() => receiver.received.length).toBe(2);
    await expect.poll(() => findAlarm(owner)).toMatchObject({ told: 'told', announcement: 1 });
  });

  test('when the mute ends in which it began', async () => {
    const owner = await given.givenDevice(db());
    const receiver = await givenWebhook(owner);
    const outbox = await start();
    await db().query(
      `insert into device_mute (device_id, until_at, muted_at, muted_by)
       values ($1, ms_to_timestamp($2), now(), 'me')`,
      [owner.deviceId, world.nowTs + 30 * minuteMs],
    );
    const [event] = await decide(outbox, [firedOf(owner, world.nowTs)]);
    expect(event).toMatchObject({ notified: false, notNotified: 'snoozed' });
    world.nowTs += 30 * minuteMs - 1;
    await runTimer(outbox);
    expect(receiver.received).toEqual([]);
    world.nowTs += 1;
    await runTimer(outbox);
    await receiver.request();
  });
});

describe('an alarm that began with measurements that were too old', () => {
  const newestAgoMs = 20 * minuteMs;
  const givenOld = async () => {
    const owner = await given.givenDevice(db());
    const receiver = await givenWebhook(owner);
    const outbox = await start();
    const old = firedOf(owner, world.nowTs - newestAgoMs, { isFresh: false });
    const [event] = await decide(outbox, [{ ...old, arrivedTs: world.nowTs }]);
    expect(event).toMatchObject({ notified: false, notNotified: 'too-old' });
    return { owner, receiver, outbox };
  };

  test('is announced after 15 minutes, with the time of the newest value', async () => {
    const { owner, receiver, outbox } = await givenOld();
    world.newestTs = world.nowTs - newestAgoMs;
    world.nowTs += 15 * minuteMs - 1;
    await runTimer(outbox);
    expect(await findAlarm(owner)).toMatchObject({ told: 'none' });
    world.nowTs += 1;
    await runTimer(outbox);
    const { body } = await receiver.request();
    expect(JSON.parse(body)).toMatchObject({
      data: { body: expect.stringContaining('09:40 UTC') as string },
    });
  });

  test('waits while its senses catch up by more than twice the time, and is announced after that', async () => {
    const { owner, receiver, outbox } = await givenOld();
    const beganMs = world.nowTs - newestAgoMs;
    for (const [look, forwardMs] of [31, 62].entries()) {
      world.nowTs += 15 * minuteMs;
      world.newestTs = beganMs + forwardMs * minuteMs;
      await runTimer(outbox);
      expect(await findAlarm(owner)).toMatchObject({
        told: 'none',
        nextTs: world.nowTs + 15 * minuteMs,
      });
      expect(look).toBeLessThan(2);
    }
    world.nowTs += 15 * minuteMs;
    world.newestTs = beganMs + (62 + 30) * minuteMs;
    await runTimer(outbox);
    await receiver.request();
  });
});

describe('repeats', () => {
  const actions = { cloud: { sendPush: true }, repeatMs: 60 * minuteMs };

  test('are postponed to the end of a mute, and end with an acknowledgement', async () => {
    const owner = await given.givenDevice(db());
    const receiver = await givenWebhook(owner);
    const outbox = await start();
    await decide(outbox, [firedOf(owner, world.nowTs, { actions })]);
    await expect.poll(() => findAlarm(owner)).toMatchObject({ told: 'told' });
    await db().query(
      `insert into device_mute (device_id, until_at, muted_at, muted_by)
       values ($1, ms_to_timestamp($2), now(), 'me')`,
      [owner.deviceId, world.nowTs + 90 * minuteMs],
    );
    world.nowTs += 60 * minuteMs;
    await runTimer(outbox);
    expect(receiver.received).toHaveLength(1);
    world.nowTs += 30 * minuteMs;
    await runTimer(outbox);
    await expect.poll(() => receiver.received.length).toBe(2);
    await db().query(`update alarm set acknowledged_at = now() where device_id = $1`, [
      owner.deviceId,
    ]);
    world.nowTs += 60 * minuteMs;
    await runTimer(outbox);
    expect(await findAlarm(owner)).toMatchObject({ nextTs: null });
  });
});

test('two processes announce an alarm once', async () => {
  const owner = await given.givenDevice(db());
  const outbox = await start();
  await decide(outbox, [firedOf(owner, world.nowTs)]);
  const receiver = await givenWebhook(owner);
  await wakeAlarms(db(), owner.accountId, world.nowTs);
  await Promise.all(Array.from({ length: 8 }, () => runTimer(outbox)));
  await receiver.request();
  await expect.poll(() => findAlarm(owner)).toMatchObject({ told: 'told', announcement: 1 });
  expect(await given.outcomesOf(db(), owner)).toHaveLength(1);
});
