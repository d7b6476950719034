import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { onceClosed, startWorld, until, wire, type World } from './harness.ts';
import { connectPacket, dial, enter, publishPacket, refusedIn5 } from './raw.ts';

let world: World;
let up: string;
let down: string;
beforeEach(async () => {
  world = await startWorld();
  up = `devices/${world.device.uuid}/up`;
  down = `devices/${world.device.uuid}/down`;
});
afterEach(() => world.close());

const stranger = 'devices/00000000-0000-4000-8000-000000000099';

describe('publishing', () => {
  test.each([
    ['measurements', { sId: '0x1', val: 2.5, ts: 5 }, 'measurements'],
    ['measurements', [{ sId: '0x1', val: { lat: 1, long: 2 } }], 'measurements'],
    ['state', { puId: 1, stId: 2, evId: 3, ts: 4 }, 'state'],
    [
      'events',
      { cause: { engine: { pId: 'p', puId: 1, stId: 1, evId: 1, ts: 1 }, senses: [] } },
      'events',
    ],
    ['profile', { pId: 'p', state: 'current', engine: 'device' }, 'profile-answer'],
    ['profile', { pId: 'p', state: 'rejected', text: 'no room' }, 'profile-answer'],
    ['profile', { state: 'request' }, 'profile-request'],
    ['configuration', { device: { name: 'n' }, module: [] }, 'configuration'],
    [
      'command',
      { commandId: '1B4E28BA-2FA1-41D2-883F-0016D3CCA427', state: 'running', progress: 5 },
      'command-answer',
    ],
  ])('up/%s %j reaches the store as %s', async (topic, payload, kind) => {
    const client = await world.connect();
    await client.publishAsync(`${up}/${topic}`, JSON.stringify(payload), { qos: 1 });
    const [first] = world.store.stored;
    expect(first?.device).toEqual(world.device.identity);
    expect(first?.uplink).toMatchObject({
      topic: `${up}/${topic}`,
      content: { kind },
      rejections: [],
    });
  });

  test.each([
    ['an unknown topic', 'temperature', '1', 'unknown-topic'],
    ['text that is not JSON', 'measurements', '{', 'invalid-json'],
    ['bytes that are not UTF-8', 'measurements', Buffer.from([0x22, 0xff, 0x22]), 'invalid-json'],
    ['a value of the wrong form', 'state', '{"puId":"1"}', 'invalid-payload'],
  ])('%s is acknowledged, and stored as a rejection', async (_what, topic, payload, reason) => {
    const client = await world.connect();
    await client.publishAsync(`${up}/${topic}`, payload, { qos: 1 }).catch(refusedIn5);
    expect(world.store.stored.map(({ uplink }) => uplink.rejections)).toMatchObject([[{ reason }]]);
    expect(world.store.stored[0]?.uplink.content).toEqual({ kind: 'none' });
  });

  test.each([
    ['to another device', () => `${stranger}/up/state`],
    ['to its own down/', () => `${down}/state`],
    ['to a topic that only looks like its own', () => `${up}measurements/state`],
    ['anywhere', () => 'hello'],
    ['to the system', () => '$SYS/hello'],
  ])(
    'publishing %s closes the connection without acknowledgement, and is reported as a rejection',
    async (_what, topicOf) => {
      const raw = await enter(world);
      const topic = topicOf();
      raw.send(publishPacket(`${up}/state`, { puId: 1, stId: 1 }, { qos: 1, messageId: 1 }));
      raw.send(publishPacket(topic, '{"a":1}', { qos: 1, messageId: 2 }));
      await raw.ended();
      expect(raw.of('puback').map(({ messageId }) => messageId)).not.toContain(2);
      await until(() => world.counted.includes('disconnected foreign-topic'));
      const { identity } = world.device;
      expect(world.store.stored).toMatchObject([
        { device: identity, uplink: { content: { kind: 'state' } } },
        {
          device: identity,
          uplink: {
            topic,
            excerpt: '{"a":1}',
            content: { kind: 'none' },
            rejections: [{ reason: 'foreign-topic' }],
          },
        },
      ]);
    },
  );

  test('a NUL in a topic closes the connection [MQTT-1.5.3-2]', async () => {
    const raw = await enter(world);
    raw.send(publishPacket(`${up}/a\0b`, '{}', { qos: 1, messageId: 1 }));
    await raw.ended();
    expect(world.store.stored).toEqual([]);
    await until(() => world.counted.includes('disconnected malformed'));
  });

  test.each(['+', '#', 'a/+/b'])(
    'a wildcard in a topic (%s) closes the connection',
    async (name) => {
      const raw = await enter(world);
      raw.send(publishPacket(`${up}/${name}`, '{}', { qos: 1, messageId: 1 }));
      await raw.ended();
      expect(world.store.stored).toEqual([]);
    },
  );

  test('nothing is retained, and no device hears another one', async () => {
    const client = await world.connect();
    const other = await enter(world, { clientId: 'other' });
    const subscriptions = [{ topic: `${down}/#`, qos: 1 as const }];
    other.send({ cmd: 'subscribe', messageId: 1, subscriptions });
    await other.expect('suback');
    await client.publishAsync(`${up}/state`, '{"puId":1,"stId":1}', {
      qos: 1,
      // Clients of MQTT 5 know from the CONNACK that nothing is retained, and do not ask for it.
      retain: wire.version === 4,
    });
    other.send({ cmd: 'subscribe', messageId: 2, subscriptions }, { cmd: 'pingreq' });
    await other.expect('pingresp');
    expect(other.of('publish')).toEqual([]);
  });
});

describe('a uuid in capitals', () => {
  const capitals = (text: string) => text.replace(world.device.uuid, (uuid) => uuid.toUpperCase());

  test('is the same: a device publishes, has a will, and receives topics as it spelled them', async () => {
    const will = { topic: capitals(`${up}/state`), payload: Buffer.from('{"puId":1,"stId":2}') };
    const raw = await enter(world, {
      username: world.device.uuid.toUpperCase(),
      will: { ...will, qos: 1, retain: false },
    });
    const topic = capitals(`${down}/#`);
    raw.send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic, qos: 1 }] });
    expect((await raw.expect('suback'))[0]?.granted).toEqual([1]);
    const { uuid } = world.device;
    world.store.bus.publish('down', {
      uuid,
      message: { topic: 'display', payload: { text: 'a' } },
    });
    expect((await raw.expect('publish'))[0]?.topic).toBe(capitals(`${down}/display`));
    for (const qos of [1, 2] as const)
      raw.send(
        publishPacket(capitals(`${up}/state`), { puId: 1, stId: 1 }, { qos, messageId: qos }),
      );
    await raw.expect('puback');
    await raw.expect('pubrec');
    raw.send(publishPacket(capitals(`${up}/elsewhere`), '{}', { qos: 1, messageId: 3 }));
    await raw.expect('puback', 2);
    raw.socket.destroy();
    await until(() => world.store.stored.length === 4);
    expect(world.store.stored.map(({ uplink }) => uplink.content.kind)).toEqual([
      'state',
      'state',
      'none',
      'state',
    ]);
  });

  test.each([
    ['DEVICES/', (text: string) => text.replace('devices/', 'DEVICES/')],
    ['/UP/', (text: string) => text.replace('/up/', '/UP/')],
  ])('is all that may differ: %s is not its topic', async (_what, changed) => {
    const raw = await enter(world);
    raw.send(publishPacket(changed(`${up}/state`), '{}', { qos: 1, messageId: 1 }));
    await raw.ended();
    await until(() => world.counted.includes('disconnected foreign-topic'));
  });
});

describe('subscribing', () => {
  const grantedFor = async (...filters: string[]) => {
    const raw = await enter(world);
    const subscriptions = filters.map((topic) => ({ topic, qos: 1 as const }));
    raw.send({ cmd: 'subscribe', messageId: 9, subscriptions });
    const [suback] = await raw.expect('suback');
    return suback?.granted;
  };

  test('its own down/, and topics below it, are granted', async () => {
    expect(await grantedFor(`${down}/#`, `${down}/+`, `${down}/profile`)).toEqual([1, 1, 1]);
  });

  test.each([
    '#',
    '+/+/down/#',
    '$SYS/#',
    '$SYS/broker/clients',
    `$share/group/devices/x/down/#`,
    `${stranger}/down/#`,
    'devices/+/down/profile',
    '__proto__',
  ])('%s is answered 128', async (filter) => {
    expect(await grantedFor(filter)).toEqual([128]);
  });

  test('its own up/ and anything above its down/ are answered 128', async () => {
    const root = `devices/${world.device.uuid}`;
    expect(await grantedFor(`${up}/#`, `${root}/#`, root, `${root}/down`)).toEqual(
      Array(4).fill(128),
    );
  });

  test('one refused filter does not affect the others, nor return with a kept session', async () => {
    const raw = await enter(world, { clean: false });
    const subscriptions = [
      { topic: `${stranger}/down/#`, qos: 1 as const },
      { topic: `${down}/display`, qos: 1 as const },
    ];
    raw.send({ cmd: 'subscribe', messageId: 1, subscriptions });
    expect((await raw.expect('suback'))[0]?.granted).toEqual([128, 1]);
    const message = { topic: 'display' as const, payload: { text: 'hi' } };
    world.store.bus.publish('down', { uuid: stranger.slice(8), message });
    world.store.bus.publish('down', { uuid: world.device.uuid, message });
    const [publish] = await raw.expect('publish');
    expect(publish?.topic).toBe(`${down}/display`);
  });
});

describe('wills', () => {
  test('a will below its own up/ is taken like any message when the connection breaks', async () => {
    const payload = Buffer.from('{"sId":"0x1","val":0}');
    const raw = await enter(world, {
      will: { topic: `${up}/measurements`, payload, qos: 1, retain: false },
    });
    raw.socket.destroy();
    await until(() => world.store.stored.length === 1);
    expect(world.store.stored[0]?.uplink.content.kind).toBe('measurements');
    await until(() => world.connector.snapshot().unackedBytes === 0);
  });

  test('a client that sends DISCONNECT leaves no will', async () => {
    const payload = Buffer.from('{"sId":"0x1","val":0}');
    const raw = await enter(world, {
      will: { topic: `${up}/measurements`, payload, qos: 1, retain: false },
    });
    raw.send({ cmd: 'disconnect' });
    await until(() => world.store.presence.length === 2);
    expect(world.store.stored).toEqual([]);
  });

  test.each([
    ['of another device', () => `${stranger}/up/state`],
    ['below its down/', () => `${down}/display`],
    ['of the system', () => '$SYS/x'],
    ['with a wildcard', () => `${up}/#`],
    ['a thousand levels deep', () => `${up}${'/x'.repeat(1_000)}`],
  ])('a will on a topic %s closes the connection', async (_what, topicOf) => {
    const raw = await dial(world);
    const will = { topic: topicOf(), payload: Buffer.from('{}'), qos: 1 as const, retain: false };
    raw.send(connectPacket(world, { will }));
    expect((await raw.expect('connack'))[0]?.returnCode).toBe(5);
    await raw.ended();
    expect(world.store.stored).toEqual([]);
  });
});

test('a removed device is disconnected, and its will goes nowhere', async () => {
  const client = await world
    .connect({ will: { topic: 'x', payload: Buffer.from('') } })
    .catch(() => null);
  expect(client).toBeNull();
  expect(world.store.refused).toMatchObject([{ reason: 'foreign-will' }]);
  const good = await world.connect();
  const closed = onceClosed(good);
  world.store.removeDevice(world.device.uuid);
  await closed;
  expect(world.counted).toContain('disconnected access-ended');
});
