import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { manualClock, startWorld, until, type World, type WorldOptions } from './harness.ts';
import { enter, moments, publishPacket, type RawClient } from './raw.ts';

let world: World;
/** How long each account has to wait. */
let waits: Map<number, number>;
/** The devices reported as waiting. */
let told: number[];
beforeEach(() => {
  waits = new Map();
  told = [];
});
afterEach(() => world.close());

const start = async ({ ports, ...options }: WorldOptions = {}) => {
  const throttle = {
    waitMs: (accountId: number) => waits.get(accountId) ?? 0,
    waits: ({ deviceId }: { deviceId: number }) => void told.push(deviceId),
  };
  world = await startWorld({ ...options, ports: { throttle, ...ports } });
};

type Owner = World['device'];

/** A device of another account than `world.device`. */
function stranger(number: number, accountId = 2): Owner {
  const device = world.store.addDevice(number);
  device.identity.accountId = accountId;
  return device;
}

const enterAs = ({ uuid, token }: Owner, more = {}) =>
  enter(world, { username: uuid, password: Buffer.from(token), ...more });

function publish(raw: RawClient, { uuid }: Owner, messageId: number, qos: 0 | 1 | 2 = 1, pad = 0) {
  const measurement = { sId: '0x1', val: messageId, pad: 'x'.repeat(pad) };
  raw.send(publishPacket(`devices/${uuid}/up/measurements`, measurement, { qos, messageId }));
}

const storedOf = ({ identity }: Owner) =>
  world.store.stored
    .filter(({ device }) => device.deviceId === identity.deviceId)
    .map(({ uplink }) =>
      uplink.content.kind === 'measurements' ? uplink.content.items[0]?.value.val : null,
    );

const ping = { cmd: 'pingreq' } as const;

describe('devices of an account that sends too much', () => {
  test('have to wait, in order; those of others do not', async () => {
    await start();
    waits.set(1, 5);
    const other = stranger(2);
    const [raw, others] = [await enterAs(world.device), await enterAs(other)];
    for (let n = 1; n <= 50; n += 1) {
      publish(raw, world.device, n);
      publish(others, other, n);
    }
    await others.expect('puback', 50);
    await until(() => told.length === 50);
    expect(raw.of('puback')).toEqual([]);
    expect(storedOf(world.device)).toEqual([]);
    waits.clear();
    for (let n = 51; n <= 300; n += 1) publish(raw, world.device, n);
    const acks = await raw.expect('puback', 300);
    const all = Array.from({ length: 300 }, (_, n) => n + 1);
    expect(acks.map(({ messageId }) => messageId)).toEqual(all);
    expect(storedOf(world.device)).toEqual(all);
    expect(told.every((deviceId) => deviceId === 1)).toBe(true);
  });

  test.each([0, 1, 2] as const)('get answers to their pings, QoS %i', async (qos) => {
    await start();
    waits.set(1, 1_000_000);
    const raw = await enterAs(world.device);
    publish(raw, world.device, 1, qos);
    await until(() => told.length === 1);
    raw.send(ping);
    await raw.expect('pingresp');
    raw.send(ping);
    await raw.expect('pingresp', 2);
    expect(world.store.stored).toEqual([]);
  });

  test('stay connected however long it takes, as long as they send', async () => {
    const clock = manualClock();
    await start({ now: clock.now, limits: { storeTimeoutMs: 10_000 } });
    waits.set(1, 1_000_000);
    const silent = world.store.addDevice(3);
    const raw = await enterAs(world.device, { keepalive: 60 });
    const quiet = await enterAs(silent, { keepalive: 60 });
    publish(raw, world.device, 1);
    publish(quiet, silent, 1);
    await until(() => told.length === 2);
    for (let round = 1; round <= 3; round += 1) {
      clock.monotonicMs += 50_000;
      raw.send(ping);
      await raw.expect('pingresp', round);
    }
    await quiet.ended();
    expect(world.counted).toContain('disconnected keepalive');
    expect(raw.isClosed).toBe(false);
    waits.clear();
    await raw.expect('puback');
    expect(storedOf(world.device)).toEqual([1]);
  });

  test('send again, after a reconnect, what waited; it is stored once', async () => {
    await start();
    waits.set(1, 1_000_000);
    const raw = await enterAs(world.device);
    publish(raw, world.device, 1, 1);
    publish(raw, world.device, 2, 0);
    await until(() => told.length === 2);
    raw.socket.destroy();
    await until(() => world.connector.snapshot().connections === 0);
    const again = await enterAs(world.device);
    publish(again, world.device, 1, 1);
    await until(() => told.length === 3);
    waits.clear();
    await again.expect('puback');
    // At QoS 0 nobody sends again, so nothing is dropped.
    await until(() => storedOf(world.device).length === 2);
    expect(storedOf(world.device)).toEqual([2, 1]);
  });

  test('are not read once too much of theirs is parked; others are', async () => {
    await start({ tuning: { maxParkedBytes: 20_000, messageOverheadBytes: 1_000 } });
    waits.set(1, 1_000_000);
    const other = stranger(2);
    const [raw, others] = [await enterAs(world.device), await enterAs(other)];
    // 4,000 bytes each: there is room for five.
    for (let n = 1; n <= 20; n += 1) {
      publish(raw, world.device, n, 1, 3_000);
      await moments(world);
    }
    raw.send(ping);
    await moments(world);
    expect(told.length).toBeLessThan(10);
    expect(raw.of('pingresp')).toEqual([]);
    publish(others, other, 1, 1, 3_000);
    await others.expect('puback');
    waits.clear();
    await raw.expect('puback', 20);
    await raw.expect('pingresp');
    expect(storedOf(world.device)).toEqual(Array.from({ length: 20 }, (_, n) => n + 1));
  });

  test('are not read either if too much of all accounts is parked', async () => {
    await start({ tuning: { maxParkedTotalBytes: 10_000, messageOverheadBytes: 5_000 } });
    const [first, second, third] = [world.device, stranger(2, 2), stranger(3, 3)];
    const raws = await Promise.all([first, second, third].map((device) => enterAs(device)));
    const [a, b, c] = raws as [RawClient, RawClient, RawClient];
    waits.set(1, 1_000_000).set(2, 1_000_000);
    publish(a, first, 1);
    publish(a, first, 2);
    await until(() => told.length === 2);
    publish(b, second, 1);
    await until(() => told.length === 3);
    publish(b, second, 2);
    publish(c, third, 1);
    await c.expect('puback');
    await moments(world);
    expect(told).toEqual([1, 1, 2]);
    // Others leave room for it, although its own account still waits.
    waits.delete(1);
    await until(() => told.length === 4);
    await a.expect('puback', 2);
    expect(b.of('puback')).toEqual([]);
    waits.clear();
    await b.expect('puback', 2);
    expect(storedOf(second)).toEqual([1, 2]);
  });

  test('do not delay the stop of the service: nothing of theirs is acknowledged', async () => {
    await start();
    waits.set(1, 1_000_000);
    const raw = await enterAs(world.device);
    publish(raw, world.device, 1);
    await until(() => told.length === 1);
    // Longer than a test may take.
    await world.close(1_000_000);
    await raw.ended();
    expect(raw.of('puback')).toEqual([]);
    expect(world.store.stored).toEqual([]);
    expect(world.logged).toEqual([]);
  });
});

describe('connections of an account', () => {
  const limited = (limit: number) =>
    start({ ports: { maxConnectionsOf: (accountId) => (accountId === 1 ? limit : Infinity) } });
  const tryAs = async (device: Owner, clientId = 'raw') => {
    const raw = await enterAs(device, { clientId });
    return raw.of('connack')[0]?.returnCode;
  };
  const reasons = () =>
    world.store.stored.flatMap(({ uplink }) => uplink.rejections.map(({ reason }) => reason));

  test('beyond its quota are refused with CONNACK 3, and a rejection once a minute', async () => {
    await limited(2);
    const [second, third] = [world.store.addDevice(2), world.store.addDevice(3)];
    expect(await tryAs(world.device)).toBe(0);
    const raw = await enterAs(second);
    expect([await tryAs(third), await tryAs(third)]).toEqual([3, 3]);
    expect(await tryAs(stranger(4))).toBe(0);
    expect(reasons()).toEqual(['too-many-connections']);
    expect(world.store.refused).toMatchObject([
      { uuid: third.uuid, reason: 'too-many-connections' },
      { uuid: third.uuid, reason: 'too-many-connections' },
    ]);
    expect(world.counted.filter((what) => what === 'refused connections')).toHaveLength(2);
    raw.socket.destroy();
    await until(() => world.store.presence.includes('disconnected 2'));
    expect(await tryAs(third)).toBe(0);
  });

  test('that replace another one do not count as one more', async () => {
    await limited(1);
    const first = await enterAs(world.device, { clientId: 'one' });
    expect(await tryAs(world.device, 'one')).toBe(0);
    await first.ended();
    expect(await tryAs(world.device, 'another')).toBe(3);
    expect(await tryAs(world.device, 'one')).toBe(0);
  });
});
