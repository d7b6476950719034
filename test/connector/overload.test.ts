import { afterEach, describe, expect, test } from 'vitest';
import { manualClock, startWorld, until, type World, type WorldOptions } from './harness.ts';
import { enter, moments, publishPacket, type RawClient } from './raw.ts';

let world: World;
let topic: string;
const start = async (options?: WorldOptions) => {
  world = await startWorld(options);
  topic = `devices/${world.device.uuid}/up/measurements`;
  return world.store;
};
afterEach(() => world.close());

const measurement = (val: number) => ({ sId: '0x1', val });
const publish = (raw: RawClient, qos: 0 | 1, messageId: number) =>
  raw.send(publishPacket(topic, measurement(messageId), { qos, messageId }));

describe('back-pressure', () => {
  const flood = (raw: RawClient, count: number) => {
    for (let n = 1; n <= count; n++) publish(raw, 1, n);
  };

  test('a socket is not read beyond its window, and nothing is lost', async () => {
    const store = await start({ tuning: { maxUnackedMessages: 10 } });
    store.isHolding = true;
    const raw = await enter(world);
    flood(raw, 300);
    await until(() => store.held.length === 10);
    await moments(world);
    expect(store.held).toHaveLength(10);
    store.release();
    const acks = await raw.expect('puback', 300);
    expect(acks.map(({ messageId }) => messageId)).toEqual(Array.from(acks, (_, n) => n + 1));
    expect(store.stored).toHaveLength(300);
  });

  test('single-packet segments do not exceed the window either', async () => {
    const store = await start({ tuning: { maxUnackedMessages: 5 } });
    store.isHolding = true;
    const raw = await enter(world);
    for (let n = 1; n <= 40; n++) {
      publish(raw, 1, n);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await until(() => store.held.length === 5);
    await moments(world);
    expect(store.held).toHaveLength(5);
    store.release();
    await raw.expect('puback', 40);
  });

  test('all connections share a budget, and each gets its turn', async () => {
    const tuning = { maxUnackedTotalBytes: 20_000, messageOverheadBytes: 1_000 };
    const store = await start({ tuning });
    store.isHolding = true;
    const clients: RawClient[] = [];
    for (let n = 1; n <= 30; n++) {
      const { uuid, token } = store.addDevice(n, n);
      const raw = await enter(world, { username: uuid, password: Buffer.from(token) });
      const own = `devices/${uuid}/up/measurements`;
      raw.send(publishPacket(own, measurement(1), { qos: 1, messageId: 1 }));
      clients.push(raw);
    }
    await until(() => store.held.length >= 18);
    await moments(world);
    expect(store.held.length).toBeLessThan(22);
    store.release();
    for (const raw of clients) await raw.expect('puback');
    expect(store.stored).toHaveLength(30);
    expect(world.connector.snapshot().unackedBytes).toBe(0);
  });

  test('a device that we do not read is not closed for its silence', async () => {
    const clock = manualClock();
    const store = await start({ now: clock.now, limits: { storeTimeoutMs: 1_000_000 } });
    store.isHolding = true;
    const raw = await enter(world, { keepalive: 1 });
    publish(raw, 1, 1);
    await until(() => store.held.length === 1);
    clock.monotonicMs += 60_000;
    await clock.looks(4);
    store.release();
    await raw.expect('puback');
    expect(raw.isClosed).toBe(false);
  });
});

describe('stopping', () => {
  test('what is under way is stored and acknowledged, then connections close', async () => {
    const store = await start();
    store.isHolding = true;
    const payload = Buffer.from('{"sId":"0x1","val":0}');
    const raw = await enter(world, { will: { topic, payload, qos: 1, retain: false } });
    for (let n = 1; n <= 5; n++) publish(raw, 1, n);
    await until(() => store.held.length === 5);
    const other = await enter(world, { clientId: 'other' });
    const closing = world.connector.close({ drainMs: 5_000 });
    raw.send(publishPacket(topic, measurement(6), { qos: 1, messageId: 6 }));
    other.send(publishPacket(topic, measurement(7), { qos: 0 }));
    await new Promise((resolve) => setImmediate(resolve));
    // What arrives now is neither stored nor acknowledged.
    expect(store.held).toHaveLength(5);
    expect(raw.isClosed).toBe(false);
    store.release();
    await closing;
    expect(store.stored).toHaveLength(5);
    expect(raw.of('puback').map(({ messageId }) => messageId)).toEqual([1, 2, 3, 4, 5]);
  });

  test('what cannot be stored in time is not acknowledged; only what nobody sends again stays', async () => {
    const store = await start();
    store.isHolding = true;
    const raw = await enter(world);
    publish(raw, 1, 1);
    publish(raw, 0, 2);
    await until(() => store.held.length === 2);
    await world.connector.close({ drainMs: 20 });
    await raw.ended();
    expect(raw.of('puback')).toEqual([]);
    expect(store.withdrawals).toBe(1);
    store.release();
    await until(() => store.stored.length === 1);
    expect(store.stored[0]?.uplink.content).toMatchObject({ items: [{ value: { val: 2 } }] });
  });
});
