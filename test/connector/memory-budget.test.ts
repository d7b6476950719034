import { afterEach, describe, expect, test } from 'vitest';
import {
  createDownlinkBudget,
  DownlinkQueue,
  type Encoded,
} from '../../connector/device/downlinks.ts';
import type { DeviceIdentity, Downlink } from '../../src/contract/uplink.ts';
import { generate } from 'mqtt-packet';
import { manualClock, startWorld, until, type World } from './harness.ts';
import { enter, moments, publishPacket, type RawClient } from './raw.ts';

let world: World | undefined;
afterEach(() => world?.close());

describe('while memory is short', () => {
  test('nothing is read, nothing is dropped, and nobody is let in', async () => {
    world = await startWorld();
    const { connector, store, device } = world;
    const raw = await enter(world);
    connector.pause(true);
    const topic = `devices/${device.uuid}/up/measurements`;
    for (let messageId = 1; messageId <= 5; messageId += 1)
      raw.send(publishPacket(topic, { sId: '0x1', val: messageId }, { qos: 1, messageId }));
    const other = world.connect();
    await until(() => (world?.connector.snapshot().connections ?? 0) === 2);
    expect(store.stored).toHaveLength(0);
    expect(world.counted).toEqual(['connected']);
    connector.pause(false);
    await raw.expect('puback', 5);
    await other;
    expect(store.stored).toHaveLength(5);
  });
});

describe('packets that do not end', () => {
  test('share a budget; the one that began first makes way', async () => {
    world = await startWorld({ tuning: { maxBegunBytes: 10_000 } });
    const { device, counted } = world;
    const topic = `devices/${device.uuid}/up/measurements`;
    const packet = generate(publishPacket(topic, 'x'.repeat(8_000), { qos: 1, messageId: 1 }));
    const first = await enter(world, { clientId: 'first' });
    const second = await enter(world, { clientId: 'second' });
    const third = await enter(world, { clientId: 'third' });
    const isMidway = (count: number) =>
      until(() => (world?.connector.snapshot().midwayBytes ?? 0) >= count * 4_000);
    first.socket.write(packet.subarray(0, 4_000));
    await isMidway(1);
    second.socket.write(packet.subarray(0, 4_000));
    await isMidway(2);
    third.socket.write(packet.subarray(0, 4_000));
    await until(() => counted.includes('disconnected unfinished'));
    for (const { socket } of [second, third]) socket.write(packet.subarray(4_000));
    await second.expect('puback', 1);
    await third.expect('puback', 1);
    expect(counted.filter((what) => what === 'disconnected unfinished')).toHaveLength(1);
    expect(world.connector.snapshot().midwayBytes).toBe(0);
  });
});

describe('messages to devices', () => {
  /** A device that reads its profile, and acknowledges messages when told to. */
  function slowDevice(accountId: number, deviceId: number, budget = createDownlinkBudget(32_000)) {
    const device: DeviceIdentity = { deviceId, uuid: `d${deviceId}`, accountId };
    const sent: Encoded[] = [];
    const acknowledge: (() => void)[] = [];
    const read: string[] = [];
    const payload = 'x'.repeat(7_000);
    const ports = {
      subscribed: async (): Promise<Downlink[]> => {
        read.push(device.uuid);
        return [{ topic: 'profile', payload, pId: 'p' }];
      },
      due: async () => [],
      clock: () => 0,
      delivered: async () => {},
    };
    const log = { info() {}, warn() {}, error() {} };
    const channel = {
      device,
      accepts: () => true,
      send: (message: Encoded) => {
        sent.push(message);
        return new Promise<void>((resolve) => acknowledge.push(resolve));
      },
    };
    const queue = new DownlinkQueue(channel, { ports, log, maxQueued: 100, budget });
    return { queue, sent, acknowledge, read, budget };
  }

  test('take room until they are acknowledged; an account that does not waits only for itself', async () => {
    const first = slowDevice(1, 1);
    const second = slowDevice(1, 2, first.budget);
    const other = slowDevice(2, 3, first.budget);
    first.queue.subscribed(['profile']);
    await until(() => first.sent.length === 1);
    second.queue.subscribed(['profile']);
    other.queue.subscribed(['profile']);
    await until(() => other.sent.length === 1);
    expect(second.read).toEqual([]);
    first.acknowledge[0]?.();
    await until(() => second.sent.length === 1);
    for (const { queue, acknowledge } of [second, other]) {
      acknowledge[0]?.();
      queue.end();
    }
    await until(() => first.budget.used === 0);
  });

  test('of a device that is gone return their room, even if they wait for it', async () => {
    const first = slowDevice(1, 1);
    const second = slowDevice(1, 2, first.budget);
    first.queue.subscribed(['profile']);
    await until(() => first.sent.length === 1);
    second.queue.subscribed(['profile']);
    await until(() => first.budget.waiting === 1);
    second.queue.end();
    first.queue.end();
    first.acknowledge[0]?.();
    await until(() => first.budget.used === 0 && first.budget.waiting === 0);
    expect(second.read).toEqual([]);
  });

  test('that are not acknowledged make way while devices of others wait', async () => {
    const clock = manualClock();
    const payload = 'x'.repeat(7_000);
    const subscribed = async (): Promise<Downlink[]> => [{ topic: 'profile', payload, pId: 'p' }];
    const tuning = { maxDownlinkBytes: 15_000 };
    world = await startWorld({ now: clock.now, tuning, ports: { subscribed } });
    const subscribe = async (accountId: number) => {
      const { uuid, token } = world?.store.addDevice(10 + accountId, accountId) ?? {};
      const as = { clientId: uuid, username: uuid, password: Buffer.from(token ?? '') };
      const raw = await enter(world as World, as);
      const subscriptions = [{ topic: `devices/${uuid}/down/profile`, qos: 1 as const }];
      raw.send({ cmd: 'subscribe', messageId: 1, subscriptions });
      await raw.expect('suback');
      return raw;
    };
    const slow = [await subscribe(2), await subscribe(3)];
    for (const raw of slow) await raw.expect('publish');
    clock.monotonicMs += 30_000;
    await clock.looks(5);
    expect(world.counted).not.toContain('disconnected unread');
    // Two have the whole budget.
    const other = await subscribe(4);
    await other.expect('publish');
    await Promise.race(slow.map((raw) => raw.ended()));
  });

  test('that are in no table are lost if there is no room', async () => {
    const first = slowDevice(1, 1, createDownlinkBudget(8_000));
    for (let n = 0; n < 10; n += 1)
      first.queue.push({ topic: 'display', payload: { text: 'x'.repeat(400), ts: n } });
    expect(first.budget.used).toBeLessThanOrEqual(2_000);
    while (first.acknowledge.length > 0) {
      first.acknowledge.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(first.sent).toHaveLength(2);
    expect(first.budget.used).toBe(0);
  });
});

test('an account that publishes and resets again and again stays within its share', async () => {
  const clock = manualClock();
  const rate = 1_000_000;
  const maxBytes = 60_000;
  world = await startWorld({
    now: clock.now,
    limits: { messagesPerSecond: rate, measurementsPerSecond: rate, storeTimeoutMs: rate },
    tuning: { maxUnackedTotalBytes: maxBytes, messageOverheadBytes: 2_000 },
  });
  const { store, connector } = world;
  store.isHolding = true;
  const other = store.addDevice(2, 2);
  const publish = (raw: RawClient, uuid: string, count: number) => {
    const topic = `devices/${uuid}/up/measurements`;
    const value = { sId: '0x1', val: 1, ts: 1 };
    const ids = Array.from({ length: count }, (_, n) => n + 1);
    raw.send(...ids.map((messageId) => publishPacket(topic, value, { qos: 1, messageId })));
  };
  for (let round = 0; round < 20; round += 1) {
    const raw = await enter(world);
    publish(raw, world.device.uuid, 5);
    await moments(world);
    raw.socket.resetAndDestroy();
    // Its devices may be forgotten, because their rates have recovered.
    clock.monotonicMs += 10_000;
    await clock.looks(20);
  }
  // Two thirds of the budget, plus one read.
  const taken = connector.snapshot().unackedBytes;
  expect(taken).toBeGreaterThan(maxBytes / 2);
  expect(taken).toBeLessThan(maxBytes * 0.9);
  const raw = await enter(world, { username: other.uuid, password: Buffer.from(other.token) });
  publish(raw, other.uuid, 1);
  await until(() => store.held.some(({ device }) => device.accountId === 2), 'the other account');
  store.release();
  await raw.expect('puback');
});

describe('what earlier connections of an account left behind', () => {
  const clock = manualClock();
  const maxBytes = 60_000;
  let waitMs: number;
  let told: number;

  async function start(): Promise<World> {
    waitMs = 0;
    told = 0;
    const limits = {
      messagesPerSecond: 1_000_000,
      measurementsPerSecond: 1_000_000,
      storeTimeoutMs: 1_000_000,
      reconnectsBurst: 1_000,
    };
    const throttle = { waitMs: () => waitMs, waits: () => void (told += 1) };
    const tuning = { maxUnackedTotalBytes: maxBytes, messageOverheadBytes: 2_000 };
    world = await startWorld({ now: clock.now, limits, tuning, ports: { throttle } });
    world.store.isHolding = true;
    return world;
  }

  const publish = (raw: RawClient, uuid: string, messageId: number) =>
    raw.send(
      publishPacket(
        `devices/${uuid}/up/measurements`,
        { sId: '0x1', val: 1, ts: 1 },
        { qos: 1, messageId },
      ),
    );

  /** Publishes until it is no longer read. Returns what is under way then: an account alone may have two thirds. */
  async function fill(own: World, raw: RawClient, uuid: string): Promise<number> {
    for (let messageId = 1; messageId <= 25; messageId += 1) {
      publish(raw, uuid, messageId);
      await moments(own);
    }
    return own.connector.snapshot().unackedBytes / maxBytes;
  }

  test('counts as the account’s, including what had to wait because of the account', async () => {
    const own = await start();
    const { store, connector, device } = own;
    waitMs = 1_000_000;
    const first = await enter(own);
    for (let messageId = 1; messageId <= 15; messageId += 1) publish(first, device.uuid, messageId);
    await until(() => told === 15);
    first.socket.resetAndDestroy();
    await until(() => connector.snapshot().connections === 0);
    // Its rates have recovered.
    clock.monotonicMs += 10_000;
    await clock.looks(20);
    const second = await enter(own);
    waitMs = 0;
    await until(() => store.held.length === 15, 'those that waited');
    const taken = await fill(own, second, device.uuid);
    expect(taken).toBeGreaterThan(0.6);
    expect(taken).toBeLessThan(0.75);
  });

  test('counts as the account’s, even if another account registered the device anew', async () => {
    const own = await start();
    const { store, connector, device } = own;
    const first = await enter(own);
    for (let messageId = 1; messageId <= 15; messageId += 1) publish(first, device.uuid, messageId);
    await until(() => store.held.length === 15);
    first.socket.resetAndDestroy();
    await until(() => connector.snapshot().connections === 0);
    const anew = store.addDevice(1, 2);
    anew.identity.deviceId = 77;
    await enter(own);
    const other = store.addDevice(3, 1);
    const as = { username: other.uuid, password: Buffer.from(other.token) };
    const taken = await fill(own, await enter(own, as), other.uuid);
    expect(taken).toBeGreaterThan(0.6);
    expect(taken).toBeLessThan(0.75);
  });
});
