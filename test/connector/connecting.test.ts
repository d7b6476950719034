import { generate } from 'mqtt-packet';
import { afterEach, describe, expect, test } from 'vitest';
import {
  manualClock,
  onceClosed,
  startWorld,
  until,
  type World,
  type WorldOptions,
} from './harness.ts';
import { connectPacket, dial, enter, publishPacket, type Connect } from './raw.ts';

let world: World;
const start = async (options?: WorldOptions) => (world = await startWorld(options));
afterEach(() => world.close());

async function connackOf(more: Partial<Connect>) {
  const raw = await dial(world, more.protocolVersion);
  raw.send(connectPacket(world, more));
  const [connack] = await raw.expect('connack');
  return { returnCode: connack?.returnCode, sessionPresent: connack?.sessionPresent, raw };
}

describe('logins', () => {
  test('a device logs in with its uuid and token, over MQTT 3.1.1 and 3.1', async () => {
    await start();
    expect((await connackOf({})).returnCode).toBe(0);
    const old = await connackOf({ protocolId: 'MQIsdp', protocolVersion: 3, clientId: 'old' });
    expect(old.returnCode).toBe(0);
    await until(() => world.counted.length === 2);
    expect(world.counted).toEqual(['connected', 'connected']);
    expect(world.connector.snapshot()).toMatchObject({ connections: 2, devices: 1 });
  });

  test.each([6, 0x85])(
    'a client of version %i learns that it is not supported',
    async (version) => {
      await start();
      const raw = await dial(world, 5);
      const packet = generate(connectPacket(world, { protocolVersion: 5 }), { protocolVersion: 5 });
      packet[packet.indexOf('MQTT') + 4] = version;
      raw.socket.write(packet);
      expect(await raw.expect('connack')).toMatchObject([{ reasonCode: 0x84 }]);
      await raw.ended();
      await until(() => world.counted.length > 0);
      expect(world.counted).toEqual(['refused protocol-version']);
    },
  );

  test.each([
    ['a wrong token', { password: Buffer.from('wrong') }],
    ['an unknown device', { username: 'nobody' }],
    ['no token', { password: undefined }],
    ['no credentials at all', { username: undefined, password: undefined }],
  ])('CONNACK 5 for %s', async (_what, more) => {
    await start();
    const { returnCode, raw } = await connackOf(more);
    expect(returnCode).toBe(5);
    await raw.ended();
    await until(() => world.counted.length > 0);
    expect(world.counted).toEqual(['refused not-authorized']);
    expect(world.store.presence).toEqual([]);
  });

  test('CONNACK 3, never 5, while the store is away', async () => {
    await start();
    world.store.isAway = true;
    const { returnCode, raw } = await connackOf({});
    expect(returnCode).toBe(3);
    await raw.ended();
    await until(() => world.counted.length > 0);
    expect(world.counted).toEqual(['refused unavailable']);
  });

  test('an unexpected failure is CONNACK 3 and is logged', async () => {
    await start({ ports: { authenticateDevice: () => Promise.reject(new TypeError('bug')) } });
    expect((await connackOf({})).returnCode).toBe(3);
    expect(world.logged).toEqual(['login.unchecked']);
  });

  test('CONNACK 2 if a session should outlive a client without identifier [MQTT-3.1.3-8]', async () => {
    await start();
    expect((await connackOf({ clientId: '', clean: true })).returnCode).toBe(0);
    // No client library writes this packet, so the identifier is removed by hand.
    const raw = await dial(world, 4);
    const { uuid, token } = world.device;
    const field = (text: string) =>
      Buffer.concat([Buffer.from([0, text.length]), Buffer.from(text)]);
    const body = Buffer.concat([
      field('MQTT'),
      Buffer.from([4, 0xc0, 0, 60, 0, 0]),
      field(uuid),
      field(token),
    ]);
    raw.socket.write(Buffer.concat([Buffer.from([0x10, body.length]), body]));
    expect((await raw.expect('connack'))[0]?.returnCode).toBe(2);
    await raw.ended();
  });
});

describe('sessions', () => {
  test('a session is never present, and its subscriptions end with its connection', async () => {
    await start();
    const { device, store } = world;
    const first = await enter(world, { clean: false });
    const subscriptions = [{ topic: `devices/${device.uuid}/down/#`, qos: 1 as const }];
    first.send({ cmd: 'subscribe', messageId: 1, subscriptions });
    await first.expect('suback');
    first.socket.destroy();
    await until(() => store.presence.length === 2);
    const again = await connackOf({ clean: false });
    expect(again).toMatchObject({ returnCode: 0, sessionPresent: false });
    store.bus.publish('down', { uuid: device.uuid, message: { topic: 'display', payload: {} } });
    again.raw.send({ cmd: 'pingreq' });
    await again.raw.expect('pingresp');
    expect(again.raw.of('publish')).toEqual([]);
  });

  test('a client with the same identifier takes over its own session', async () => {
    await start();
    const first = await world.connect({ clientId: 'kitchen' });
    const closed = onceClosed(first);
    await world.connect({ clientId: 'kitchen' });
    await closed;
    await until(() => world.counted.includes('disconnected replaced'));
    expect(world.connector.snapshot()).toMatchObject({ connections: 1, devices: 1 });
  });

  const takeovers = () =>
    world.store.stored.filter(
      ({ uplink }) => uplink.rejections[0]?.reason === 'session-taken-over',
    );

  test('two clients with one identifier are reported, once a minute; one that reconnects is not', async () => {
    const clock = manualClock();
    await start({ now: clock.now });
    const come = () => enter(world, { clientId: 'kitchen' });
    await come();
    const second = await come();
    await until(
      () => world.counted.filter((what) => what === 'disconnected replaced').length === 1,
    );
    clock.monotonicMs += 60_000;
    second.send({ cmd: 'pingreq' });
    await second.expect('pingresp');
    await come();
    expect(takeovers()).toEqual([]);
    clock.monotonicMs += 59_999;
    for (let n = 0; n < 5; n += 1) await come();
    await until(() => takeovers().length > 0);
    expect(takeovers()).toMatchObject([
      { device: world.device.identity, uplink: { topic: 'CONNECT' } },
    ]);
    clock.monotonicMs += 60_000;
    for (let n = 0; n < 5; n += 1) await come();
    await until(() => takeovers().length > 1);
    expect(takeovers()).toHaveLength(2);
  });

  test('so are two clients with one identifier at two processes', async () => {
    await start();
    const { bus } = world.store;
    for (let n = 0; n < 2; n += 1) {
      const raw = await enter(world, { clientId: 'kitchen' });
      const { uuid } = world.device.identity;
      bus.publish('session', { uuid, clientId: 'kitchen', connection: 'of another process' });
      await raw.ended();
      expect(takeovers()).toHaveLength(n);
    }
  });

  test('naming another device’s session does not take it over', async () => {
    await start();
    const mine = await world.connect({ clientId: 'kitchen' });
    const other = world.store.addDevice(2);
    await world.connect({ as: other, clientId: 'kitchen' });
    await mine.publishAsync(`devices/${world.device.uuid}/up/profile`, '{"state":"request"}', {
      qos: 1,
    });
    expect(world.connector.snapshot()).toMatchObject({ connections: 2, devices: 2 });
  });

  test('clients without identifier exist side by side', async () => {
    await start();
    const first = await enter(world, { clientId: '' });
    await enter(world, { clientId: '' });
    first.send({ cmd: 'pingreq' });
    await first.expect('pingresp');
    expect(world.connector.snapshot().connections).toBe(2);
  });

  test('a session that another process took over is closed here', async () => {
    await start();
    const client = await world.connect({ clientId: 'kitchen' });
    const closed = onceClosed(client);
    const { uuid } = world.device;
    world.store.bus.publish('session', { uuid, clientId: 'bath', connection: 'elsewhere' });
    world.store.bus.publish('session', { uuid, clientId: 'kitchen', connection: 'elsewhere' });
    await closed;
    expect(world.counted).toContain('disconnected replaced');
  });

  test('others are notified of a session that begins', async () => {
    await start();
    const told: unknown[] = [];
    world.store.bus.subscribe('session', (message) => told.push(message));
    await world.connect({ clientId: 'kitchen' });
    const connection = expect.any(String);
    expect(told).toEqual([{ uuid: world.device.uuid, clientId: 'kitchen', connection }]);
  });

  test('of more than 4 connections of a device the oldest is closed', async () => {
    await start();
    const clients = [];
    for (let n = 0; n < 4; n++) clients.push(await enter(world, { clientId: `c${n}` }));
    const fifth = await enter(world, { clientId: 'c4' });
    await clients[0]?.ended();
    fifth.send({ cmd: 'pingreq' });
    await fifth.expect('pingresp');
    expect(clients.map(({ isClosed }) => isClosed)).toEqual([true, false, false, false]);
    expect(world.store.presence).toEqual(['connected 1']);
  });

  test('long identifiers, and names of object members, are identifiers like any other', async () => {
    await start();
    for (const clientId of ['__proto__', 'constructor', 'x'.repeat(3_000)]) {
      const raw = await enter(world, { clientId });
      raw.send(
        publishPacket(`devices/${world.device.uuid}/up/state`, '{}', { qos: 1, messageId: 7 }),
      );
      expect(await raw.expect('puback')).toHaveLength(1);
      raw.socket.destroy();
    }
    expect(({} as Record<string, unknown>)['client']).toBeUndefined();
  });
});

test('presence reports a device’s first connection and the end of its last', async () => {
  await start();
  const first = await world.connect({ clientId: 'a' });
  const second = await world.connect({ clientId: 'b' });
  await first.endAsync();
  await until(() => world.connector.snapshot().connections === 1);
  expect(world.store.presence).toEqual(['connected 1']);
  await second.endAsync();
  await until(() => world.connector.snapshot().connections === 0);
  expect(world.store.presence).toEqual(['connected 1', 'disconnected 1']);
});

test('packets that follow CONNECT without waiting for its answer are all taken', async () => {
  await start();
  const raw = await dial(world);
  const topic = `devices/${world.device.uuid}/up/state`;
  const publishes = Array.from({ length: 90 }, (_, n) =>
    publishPacket(topic, { puId: 1, stId: n }, { qos: 1, messageId: n + 1 }),
  );
  raw.send(connectPacket(world), ...publishes);
  const acks = await raw.expect('puback', 90);
  expect(acks.map(({ messageId }) => messageId)).toEqual(publishes.map((_, n) => n + 1));
});
