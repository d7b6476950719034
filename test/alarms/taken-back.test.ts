import { expect, test } from 'vitest';
import { startHookReceiver } from '../support/hook-receiver.ts';
import * as given from '../notifications/fixtures.ts';
import { firedOf, minuteMs, useAlarms } from './notify-world.ts';

const { world, closing, start, decide, runTimer, addContact, findAlarm, usedBy, db } = useAlarms();

async function givenReceiver(status: () => number) {
  const receiver = await startHookReceiver(() => ({ status: status() }));
  closing.push(receiver.close);
  return receiver;
}

test('an announcement that reaches nobody is withdrawn and repeated, later each time, without using up the quota', async () => {
  let status = 500;
  const receiver = await givenReceiver(() => status);
  const owner = await given.givenDevice(db());
  await addContact(owner, 'webhook', receiver.url);
  const outbox = await start();
  const [event] = await decide(outbox, [firedOf(owner, world.nowTs)]);
  expect(event).toMatchObject({ notified: true });
  for (const [n, pause] of [1, 5, 15, 60, 60].entries()) {
    await expect
      .poll(() => findAlarm(owner), { timeout: 60_000 })
      .toMatchObject({
        told: 'withdrawn',
        failures: n + 1,
        announcedTs: null,
        nextTs: world.nowTs + pause * minuteMs,
      });
    expect(await usedBy(owner, 'webhook')).toBe(0);
    expect(receiver.received).toHaveLength(n + 1);
    // A firing during the pause belongs to the same episode.
    const [again] = await decide(outbox, [firedOf(owner, world.nowTs + 1)]);
    expect(again).toMatchObject({ notified: false, notNotified: 'same-episode' });
    world.nowTs += pause * minuteMs - 1;
    await runTimer(outbox);
    expect(await findAlarm(owner)).toMatchObject({ announcement: n + 1 });
    // The recipient itself has failed five times by then and rests; end that too.
    await db().query('update contact set rests_until = null');
    world.nowTs += 1;
    if (n === 4) status = 204;
    await runTimer(outbox);
  }
  await expect
    .poll(() => findAlarm(owner), { timeout: 60_000 })
    .toMatchObject({ told: 'told', failures: 0, announcement: 6, nextTs: null });
  expect(await usedBy(owner, 'webhook')).toBe(1);
});

test('if only one of two recipients refuses, nothing is withdrawn', async () => {
  const [refusing, taking] = [await givenReceiver(() => 500), await givenReceiver(() => 204)];
  const owner = await given.givenDevice(db());
  await addContact(owner, 'webhook', refusing.url);
  await addContact(owner, 'webhook', taking.url);
  const outbox = await start();
  await decide(outbox, [firedOf(owner, world.nowTs)]);
  await given.outcomesOf(db(), owner, (all) => all.every(({ state }) => state !== 'queued'));
  expect(await findAlarm(owner)).toMatchObject({ told: 'told', failures: 0 });
  expect(await usedBy(owner, 'webhook')).toBe(1);
});

test('a repeat that fails withdraws nothing, and the next one is sent all the same', async () => {
  let status = 204;
  const receiver = await givenReceiver(() => status);
  const owner = await given.givenDevice(db());
  await addContact(owner, 'webhook', receiver.url);
  const outbox = await start();
  const actions = { cloud: { sendPush: true }, repeatMs: 60 * minuteMs };
  await decide(outbox, [firedOf(owner, world.nowTs, { actions })]);
  await expect.poll(() => findAlarm(owner)).toMatchObject({ told: 'told' });
  for (const [n, answer] of [500, 204].entries()) {
    status = answer;
    world.nowTs += 60 * minuteMs;
    world.newestTs = world.nowTs - 5 * minuteMs;
    await runTimer(outbox);
    const outcomes = await given.outcomesOf(
      db(),
      owner,
      (all) => all.length === n + 2 && all.every(({ state }) => state !== 'queued'),
    );
    expect(outcomes[0]).toMatchObject({
      state: answer === 500 ? 'failed' : 'sent',
      body: expect.stringContaining('Open since 10:00 UTC. Last value from') as string,
    });
    expect(await findAlarm(owner)).toMatchObject({ told: 'told', announcement: 1 });
  }
  const types = receiver.received.map(({ body }) => (JSON.parse(body) as { type: string }).type);
  expect(types).toEqual(['alarm.opened', 'alarm.repeated', 'alarm.repeated']);
});

test('an announcement is withdrawn once, even if its last messages end at the same time', async () => {
  const receiver = await givenReceiver(() => 500);
  const owner = await given.givenDevice(db());
  for (const path of ['a', 'b']) await addContact(owner, 'webhook', `${receiver.url}/${path}`);
  const outbox = await start();
  for (let round = 1; round <= 10; round += 1) {
    if (round === 1) await decide(outbox, [firedOf(owner, world.nowTs)]);
    else await runTimer(outbox);
    await expect
      .poll(() => findAlarm(owner), { timeout: 60_000 })
      .toMatchObject({ told: 'withdrawn', failures: round, announcement: round });
    await db().query('update contact set rests_until = null');
    world.nowTs += 60 * minuteMs;
  }
  expect(receiver.received).toHaveLength(20);
});
