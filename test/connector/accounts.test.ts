import { afterEach, describe, expect, test } from 'vitest';
import { manualClock, startWorld, until, type World } from './harness.ts';
import { enter, moments, publishPacket, type RawClient } from './raw.ts';

let world: World;
afterEach(() => world.close());

/** A connected device of an account. `send` publishes a message with this many measurements. */
async function device(number: number, accountId: number) {
  const { uuid, token } = world.store.addDevice(number, accountId);
  const raw = await enter(world, { username: uuid, password: Buffer.from(token) });
  let messageId = 0;
  const send = (count = 1) => {
    messageId += 1;
    const list = Array.from({ length: count }, (_, n) => ({ sId: '0x1', val: n, ts: n }));
    raw.send(publishPacket(`devices/${uuid}/up/measurements`, list, { qos: 1, messageId }));
  };
  return { raw, send };
}

const heldOf = (accountId: number) =>
  world.store.held.filter(({ device: { accountId: id } }) => id === accountId).length;
const acks = ({ raw }: { raw: RawClient }) => raw.of('puback').length;

describe('the memory for messages that wait', () => {
  test('is never taken entirely by one account, and nothing is lost', async () => {
    // At most this many messages of a connection fit into one read.
    const tuning = {
      maxUnackedTotalBytes: 30_000,
      messageOverheadBytes: 1_000,
      maxUnackedMessages: 5,
    };
    world = await startWorld({ tuning });
    world.store.isHolding = true;
    const noisy = await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map((n) => device(n, 1)));
    for (const { send } of noisy) for (let n = 0; n < 20; n++) send();
    await until(() => heldOf(1) >= 15);
    await moments(world);
    // Two thirds, plus one read.
    expect(heldOf(1)).toBeLessThan(30);
    const quiet = await device(9, 2);
    quiet.send();
    await until(() => heldOf(2) === 1);
    world.store.release();
    for (const { raw } of noisy) await raw.expect('puback', 20);
    await quiet.raw.expect('puback');
    expect(world.connector.snapshot().unackedBytes).toBe(0);
  });

  test('is given to accounts in turn if several wait for it', async () => {
    const tuning = {
      maxUnackedTotalBytes: 5_000,
      messageOverheadBytes: 1_000,
      maxUnackedMessages: 1,
    };
    world = await startWorld({ tuning });
    world.store.isHolding = true;
    const noisy = await Promise.all(Array.from({ length: 40 }, (_, n) => device(n + 1, 1)));
    for (const { send } of noisy) send();
    await moments(world);
    const others = await Promise.all([2, 3, 4, 5].map((account) => device(100 + account, account)));
    for (const { send } of others) send();
    await moments(world);
    // Each commit lets another one in.
    let committed = 0;
    while ([2, 3, 4, 5].some((account) => heldOf(account) === 0)) {
      await until(() => world.store.held.length > 0);
      const index = world.store.held.findIndex(({ device: { accountId } }) => accountId === 1);
      const [first] = world.store.held.splice(Math.max(0, index), 1);
      first?.commit();
      committed += 1;
      await moments(world);
      expect(committed).toBeLessThan(20);
    }
    world.store.release();
    for (const { raw } of [...noisy, ...others]) await raw.expect('puback');
  });
});

describe('an account’s measurements a second', () => {
  const start = async () => {
    const clock = manualClock();
    world = await startWorld({ now: clock.now });
    world.store.accountRate = 500;
    return clock;
  };

  test('are limited while others wait, and none is dropped', async () => {
    const clock = await start();
    world.store.areOthersWaiting = true;
    const [first, second] = [await device(1, 1), await device(2, 1)];
    first.send(400);
    second.send(400);
    await first.raw.expect('puback');
    await second.raw.expect('puback');
    const other = await device(3, 2);
    first.send();
    second.send();
    other.send();
    await other.raw.expect('puback');
    await moments(world);
    expect([acks(first), acks(second)]).toEqual([1, 1]);
    clock.monotonicMs += 1_000;
    await first.raw.expect('puback', 2);
    await second.raw.expect('puback', 2);
  });

  test('are not limited while nobody else waits, and leave no debt', async () => {
    const clock = await start();
    const [first, second] = [await device(1, 1), await device(2, 1)];
    for (const one of [first, second]) {
      one.send(900);
      await one.raw.expect('puback');
    }
    first.send();
    await first.raw.expect('puback', 2);
    world.store.areOthersWaiting = true;
    second.send();
    clock.monotonicMs += 10;
    await second.raw.expect('puback', 2);
  });

  test('are no longer limited once nobody else waits', async () => {
    await start();
    world.store.areOthersWaiting = true;
    const one = await device(1, 1);
    one.send(900);
    await one.raw.expect('puback');
    one.send();
    await moments(world);
    expect(acks(one)).toBe(1);
    world.store.areOthersWaiting = false;
    await one.raw.expect('puback', 2);
  });
});
