import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { manualClock, onceClosed, startWorld, until, type World, wire } from './harness.ts';
import { connectPacket, dial, enter, moments, publishPacket } from './raw.ts';

/** The code of a CONNACK. */
const notAuthorized = () => (wire.version === 4 ? 5 : 0x87);

let world: World;
beforeEach(async () => {
  world = await startWorld();
});
afterEach(() => world.close());

describe('a device that lost its access', () => {
  test('is disconnected everywhere, and cannot reconnect', async () => {
    const clients = await Promise.all(['a', 'b'].map((clientId) => world.connect({ clientId })));
    const closed = Promise.all(clients.map(onceClosed));
    world.store.removeDevice(world.device.uuid);
    await closed;
    await expect(world.connect()).rejects.toMatchObject({ code: notAuthorized() });
    expect(world.counted.filter((what) => what === 'disconnected access-ended')).toHaveLength(2);
  });

  test('is disconnected even if the store was away at the notice', async () => {
    const client = await world.connect();
    const closed = onceClosed(client);
    world.store.isAway = true;
    world.store.removeDevice(world.device.uuid);
    await moments(world);
    expect(client.connected).toBe(true);
    world.store.isAway = false;
    await closed;
  });

  test('is disconnected even if the notice itself was missed', async () => {
    const client = await world.connect();
    const closed = onceClosed(client);
    world.store.forgetDevice(world.device.uuid);
    world.store.bus.publish('resync', {});
    await closed;
  });

  test.each([
    ['', (uuid: string) => uuid],
    [' of its uuid in capitals', (uuid: string) => uuid.toUpperCase()],
  ])('is not let in by a check%s that was under way', async (_, write) => {
    const checked = Promise.withResolvers<void>();
    world.store.beforeAuthenticated = () => checked.promise;
    const raw = await dial(world);
    raw.send(connectPacket(world, { username: write(world.device.uuid) }));
    await until(() => world.store.checks === 1);
    world.store.removeDevice(world.device.uuid);
    checked.resolve();
    expect((await raw.expect('connack'))[0]?.returnCode).toBe(5);
    await raw.ended();
  });
});

describe('a device whose account is disabled', () => {
  test('is disconnected everywhere, and cannot reconnect; others stay', async () => {
    const device = world.store.addDevice(2);
    const other = world.store.addDevice(3, 2);
    const ids = ['a', 'b'].map((clientId) => world.connect({ clientId, as: device }));
    const clients = await Promise.all([...ids, world.connect()]);
    const stays = await world.connect({ as: other });
    const closed = Promise.all(clients.map(onceClosed));
    world.store.disableAccount(1);
    await closed;
    expect(stays.connected).toBe(true);
    await expect(world.connect()).rejects.toMatchObject({ code: notAuthorized() });
    expect(world.counted.filter((what) => what === 'disconnected access-ended')).toHaveLength(3);
  });

  test('is not let in by a check that was under way', async () => {
    const checked = Promise.withResolvers<void>();
    world.store.beforeAuthenticated = () => checked.promise;
    const raw = await dial(world);
    raw.send(connectPacket(world));
    await until(() => world.store.checks === 1);
    world.store.disableAccount(1);
    checked.resolve();
    expect((await raw.expect('connack'))[0]?.returnCode).toBe(5);
    await raw.ended();
  });

  test('has its messages under way withdrawn: neither stored nor acknowledged', async () => {
    const raw = await enter(world);
    world.store.isHolding = true;
    const topic = `devices/${world.device.uuid}/up/measurements`;
    raw.send(publishPacket(topic, { sId: '0x1', val: 1 }, { qos: 1, messageId: 7 }));
    await until(() => world.store.held.length === 1);
    world.store.disableAccount(1);
    await raw.ended();
    await until(() => world.store.withdrawals === 1);
    world.store.release();
    expect(world.store.stored).toEqual([]);
    expect(raw.of('puback')).toEqual([]);
  });
});

test('a device stays connected if a change of access leaves it its own', async () => {
  const raw = await enter(world);
  world.store.bus.publish('access', { deviceId: 1, uuid: world.device.uuid });
  raw.send({ cmd: 'pingreq' });
  await raw.expect('pingresp');
  expect(raw.isClosed).toBe(false);
});

test('a client that hangs up while being checked is forgotten', async () => {
  const checked = Promise.withResolvers<void>();
  world.store.beforeAuthenticated = () => checked.promise;
  const raw = await dial(world);
  raw.send(connectPacket(world));
  await until(() => world.store.checks === 1);
  raw.socket.resetAndDestroy();
  await until(() => world.connector.snapshot().connections === 0);
  checked.resolve();
  await moments(world);
  expect(world.store.presence.filter((what) => what.endsWith(' 1'))).toEqual([]);
});

test('a check that never ends closes the connection', async () => {
  await world.close();
  const clock = manualClock();
  const authenticateDevice = () => new Promise<null>(() => {});
  world = await startWorld({ now: clock.now, ports: { authenticateDevice } });
  const raw = await dial(world);
  raw.send(connectPacket(world));
  await until(() => world.connector.snapshot().connections === 1);
  await until(() => {
    clock.monotonicMs += 1_000;
    return raw.isClosed;
  });
  await until(() => world.counted.length > 0);
  expect(world.counted).toEqual(['refused unavailable']);
});
