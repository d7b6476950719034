import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Downlink } from '../../src/contract/uplink.ts';
import { DomainError } from '../../src/errors.ts';
import {
  collect,
  manualClock,
  startWorld,
  until,
  type World,
  type WorldOptions,
} from './harness.ts';
import { enter, moments, publishPacket } from './raw.ts';

let world: World;
let down: string;
const start = async (options?: WorldOptions) => {
  world = await startWorld(options);
  down = `devices/${world.device.uuid}/down`;
};
beforeEach(() => start());
afterEach(() => world.close());

const profile = (pId: string): Downlink => ({ topic: 'profile', payload: { pId }, pId });
const display = (text: string): Downlink => ({ topic: 'display', payload: { text } });
const tell = (message: Downlink) =>
  world.store.bus.publish('down', { uuid: world.device.uuid, message });

/** A bare client that has subscribed. The test sends its acknowledgements. */
async function subscribe(filter = `${down}/#`, qos: 0 | 1 | 2 = 1) {
  const raw = await enter(world);
  raw.send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: filter, qos }] });
  await raw.expect('suback');
  return raw;
}

describe('what a device is sent when it subscribes', () => {
  test('comes from the database, each time it subscribes, for the topics it names', async () => {
    world.store.onSubscribed = (topics) => topics.map((topic) => ({ topic, payload: { topic } }));
    const client = await world.connect();
    const messages = collect(client);
    await client.subscribeAsync(`${down}/profile`, { qos: 1 });
    await client.subscribeAsync([`${down}/state`, `${down}/configuration`], { qos: 1 });
    await client.subscribeAsync(`${down}/profile`, { qos: 1 });
    await until(() => messages.length === 4);
    expect(world.store.subscribedTo).toEqual([
      ['profile'],
      ['state', 'configuration'],
      ['profile'],
    ]);
    expect(messages.map(({ topic }) => topic.slice(down.length + 1))).toEqual([
      'profile',
      'state',
      'configuration',
      'profile',
    ]);
  });

  test('is read again until the store is back', async () => {
    world.store.isAway = false;
    world.store.onSubscribed = () => [profile('p1')];
    const client = await world.connect();
    world.store.isAway = true;
    const messages = collect(client);
    await client.subscribeAsync(`${down}/#`, { qos: 1 });
    await until(() => world.store.subscribedTo.length >= 3);
    expect(messages).toEqual([]);
    world.store.isAway = false;
    await until(() => messages.length === 1);
    expect(world.logged).toEqual([]);
  });

  test('nothing is read if every filter was refused', async () => {
    const raw = await enter(world);
    raw.send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: '#', qos: 1 }] });
    await raw.expect('suback');
    await moments(world);
    expect(world.store.subscribedTo).toEqual([]);
  });
});

describe('what happens while it is connected', () => {
  test('a profile or configuration that falls due is sent at once', async () => {
    world.store.onDue = (topic) => [{ topic, payload: { due: topic } }];
    const client = await world.connect();
    const messages = collect(client);
    await client.subscribeAsync(`${down}/#`, { qos: 1 });
    const { uuid } = world.device;
    world.store.bus.publish('device', { deviceId: 1, uuid });
    world.store.bus.publish('device', { deviceId: 1, uuid, push: 'profile' });
    world.store.bus.publish('device', { deviceId: 1, uuid, push: 'configuration' });
    await until(() => messages.length === 2);
    expect(messages).toEqual([
      { topic: `${down}/profile`, payload: { due: 'profile' }, qos: 1 },
      { topic: `${down}/configuration`, payload: { due: 'configuration' }, qos: 1 },
    ]);
  });

  test('a message for the device reaches each of its connections that subscribed to it', async () => {
    const clients = await Promise.all(
      ['a', 'b', 'c'].map((clientId) => world.connect({ clientId })),
    );
    const [a, b, c] = clients.map(collect);
    await clients[0]?.subscribeAsync(`${down}/#`, { qos: 1 });
    await clients[1]?.subscribeAsync(`${down}/display`, { qos: 1 });
    await clients[2]?.subscribeAsync(`${down}/errors`, { qos: 1 });
    tell(display('hello'));
    await until(() => a?.length === 1 && b?.length === 1);
    await moments(world);
    expect(c).toEqual([]);
    await clients[0]?.unsubscribeAsync(`${down}/#`);
    tell(display('again'));
    await until(() => b?.length === 2);
    expect(a).toHaveLength(1);
  });

  test('after notices may have been missed, what is due is read again', async () => {
    world.store.onDue = (topic) => (topic === 'profile' ? [profile('missed')] : []);
    const raw = await subscribe();
    world.store.bus.publish('resync', {});
    const [publish] = await raw.expect('publish');
    expect(JSON.parse(String(publish?.payload))).toEqual({ pId: 'missed' });
  });
});

describe('delivery', () => {
  test('a profile counts as delivered with its PUBACK, not before', async () => {
    world.store.onSubscribed = () => [profile('p1')];
    const raw = await subscribe();
    const [publish] = await raw.expect('publish');
    expect(publish?.qos).toBe(1);
    await moments(world);
    expect(world.store.delivered).toEqual([]);
    raw.send({ cmd: 'puback', messageId: 12_345 });
    await moments(world);
    expect(world.store.delivered).toEqual([]);
    raw.send({ cmd: 'puback', messageId: publish?.messageId ?? 0 });
    await until(() => world.store.delivered.length === 1);
    expect(world.store.delivered).toEqual([profile('p1')]);
  });

  test('or, at QoS 0, once it is written', async () => {
    world.store.onSubscribed = () => [profile('p1')];
    const raw = await subscribe(`${down}/profile`, 0);
    expect((await raw.expect('publish'))[0]?.qos).toBe(0);
    await until(() => world.store.delivered.length === 1);
  });

  test.each([
    [0, 0],
    [1, 1],
    [2, 1],
  ] as const)(
    'a subscription at QoS %i is served at QoS %i, through a wildcard too',
    async (asked, given) => {
      const raw = await subscribe(`${down}/#`, asked);
      tell(display('x'));
      expect((await raw.expect('publish'))[0]).toMatchObject({
        qos: given,
        retain: false,
        dup: false,
      });
    },
  );

  test('of overlapping filters the highest QoS counts, and one copy is sent [MQTT-3.3.5-1]', async () => {
    const raw = await subscribe(`${down}/#`, 0);
    const subscriptions = [{ topic: `${down}/display`, qos: 1 as const }];
    raw.send({ cmd: 'subscribe', messageId: 2, subscriptions });
    await raw.expect('suback', 2);
    tell(display('x'));
    await raw.expect('publish');
    await moments(world);
    expect(raw.of('publish').map(({ qos }) => qos)).toEqual([1]);
  });

  test('one message is in flight at a time: none overtakes another one', async () => {
    const raw = await subscribe();
    for (let n = 1; n <= 20; n++) tell(display(String(n)));
    for (let n = 1; n <= 20; n++) {
      const publishes = await raw.expect('publish', n);
      expect(publishes).toHaveLength(n);
      raw.send({ cmd: 'puback', messageId: publishes[n - 1]?.messageId ?? 0 });
    }
    const texts = raw.of('publish').map(({ payload }) => JSON.parse(String(payload)).text);
    expect(texts).toEqual(Array.from({ length: 20 }, (_, n) => String(n + 1)));
  });

  test('of profile, configuration and state only the newest waits', async () => {
    const raw = await subscribe();
    tell(display('in flight'));
    tell(profile('old'));
    tell(display('between'));
    tell(profile('new'));
    for (let n = 1; n <= 3; n++) {
      const publishes = await raw.expect('publish', n);
      raw.send({ cmd: 'puback', messageId: publishes[n - 1]?.messageId ?? 0 });
    }
    const sent = raw.of('publish').map(({ payload }) => JSON.parse(String(payload)));
    expect(sent).toEqual([{ text: 'in flight' }, { text: 'between' }, { pId: 'new' }]);
  });

  test('a device that acknowledges nothing is disconnected after a while, and its queue is bounded', async () => {
    await world.close();
    const clock = manualClock();
    await start({ now: clock.now, tuning: { maxQueuedDownlinks: 5 } });
    const raw = await subscribe();
    for (let n = 1; n <= 50; n++) tell(display(String(n)));
    const publishes = await raw.expect('publish', 1);
    raw.send({ cmd: 'puback', messageId: publishes[0]?.messageId ?? 0 });
    const [, second] = await raw.expect('publish', 2);
    expect(JSON.parse(String(second?.payload))).toEqual({ text: '46' });
    clock.monotonicMs += 61_000;
    await raw.ended();
    await until(() => world.counted.includes('disconnected unread'));
    await until(() => world.store.stored.length > 0);
    expect(world.store.stored).toMatchObject([
      {
        device: world.device.identity,
        uplink: {
          topic: `${down}/display`,
          rejections: [{ reason: 'message-not-acknowledged' }],
        },
      },
    ]);
  });

  test('a delivery that cannot be recorded is logged and stops nothing', async () => {
    await world.close();
    const delivered = () => Promise.reject(new DomainError('unavailable', 'away'));
    await start({ ports: { delivered } });
    const raw = await subscribe(`${down}/#`, 0);
    tell(profile('p1'));
    tell(display('next'));
    await raw.expect('publish', 2);
    expect(world.logged).toEqual(['downlink.unnoted']);
  });

  test('a large message arrives whole', async () => {
    const client = await world.connect();
    const messages = collect(client);
    await client.subscribeAsync(`${down}/#`, { qos: 1 });
    const text = 'x'.repeat(1_000_000);
    tell(display(text));
    await until(() => messages.length === 1);
    expect(messages[0]?.payload).toEqual({ text });
  });
});

test('a device that never reads does not delay the others', async () => {
  const deaf = await subscribe();
  deaf.socket.pause();
  for (let n = 0; n < 100; n++) tell(display('x'.repeat(100_000)));
  const { uuid, token } = world.store.addDevice(2);
  const other = await enter(world, { username: uuid, password: Buffer.from(token) });
  const topic = `devices/${uuid}/up/state`;
  other.send(publishPacket(topic, { puId: 1, stId: 1 }, { qos: 1, messageId: 1 }));
  expect(await other.expect('puback')).toHaveLength(1);
});
