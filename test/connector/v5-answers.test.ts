// What the service tells clients of MQTT 5: what became of a message, why a connection ends, and what they are sent.
import { afterEach, describe, expect, test } from 'vitest';
import type { Downlink } from '../../src/contract/uplink.ts';
import { manualClock, startWorld, until, type World, type WorldOptions } from './harness.ts';
import { enter, publishPacket, type Connect, type RawClient } from './raw.ts';

let world: World;
let up: string;
let down: string;
const start = async (options?: WorldOptions) => {
  world = await startWorld(options);
  up = `devices/${world.device.uuid}/up`;
  down = `devices/${world.device.uuid}/down`;
};
afterEach(() => world.close());

const enter5 = (more: Partial<Connect> = {}): Promise<RawClient> =>
  enter(world, { protocolVersion: 5, ...more });

const good = { sId: '0x1', val: 1 };

describe('an acknowledgement', () => {
  const messages: [string, string, unknown, number, string | undefined, number][] = [
    ['of good items', 'measurements', [good, good], 0, undefined, 0],
    ['of some that are wrong', 'measurements', [good, { sId: 1 }, {}], 0, undefined, 2],
    ['of many that are wrong', 'measurements', [good, ...Array(50).fill({})], 0, undefined, 50],
    ['of an empty list', 'measurements', [], 0, undefined, 0],
    ['of a member that has no effect', 'measurements', { ...good, unit: 'C' }, 0, undefined, 0],
    ['of none that is right', 'measurements', [{}, {}], 0x83, 'Invalid', 2],
    ['of a state that is none', 'state', { puId: 'a' }, 0x83, 'Invalid', 1],
    ['of no JSON', 'state', '{', 0x99, 'The payload is not JSON', 1],
    ['of a topic that there is not', 'weather', '1', 0x90, 'Devices publish to measurements', 1],
  ];

  describe.each([
    [1, 'puback'],
    [2, 'pubrec'],
  ] as const)('QoS %i', (qos, cmd) => {
    test.each(messages)('%s', async (_what, topic, payload, code, says, rejected) => {
      await start();
      const raw = await enter5();
      raw.send(publishPacket(`${up}/${topic}`, payload, { qos, messageId: 300 }));
      const [ack] = await raw.expect(cmd);
      expect(ack).toMatchObject({ messageId: 300, reasonCode: code });
      const { reasonString, userProperties } = ack?.properties ?? {};
      expect(reasonString === undefined).toBe(says === undefined);
      expect(reasonString ?? '').toContain(says ?? '');
      expect(userProperties?.['rejected']).toBe(rejected ? String(rejected) : undefined);
    });
  });

  test('of no UTF-8 is 0x99', async () => {
    await start();
    const raw = await enter5();
    const payload = Buffer.from([0x22, 0xff, 0x22]);
    raw.send({
      cmd: 'publish',
      topic: `${up}/state`,
      payload,
      qos: 1,
      messageId: 1,
      dup: false,
      retain: false,
    });
    expect((await raw.expect('puback'))[0]).toMatchObject({ reasonCode: 0x99 });
  });

  test.each([
    ['wants no reasons', { requestProblemInformation: false }],
    ['takes no packet that has room for them', { maximumPacketSize: 70 }],
  ])('says only its code where the client %s', async (_what, properties) => {
    await start();
    const raw = await enter5({ properties });
    raw.send(publishPacket(`${up}/weather`, '1', { qos: 1, messageId: 1 }));
    raw.send(publishPacket(`${up}/measurements`, [good, {}], { qos: 1, messageId: 2 }));
    const [first, second] = await raw.expect('puback', 2);
    expect(first).toMatchObject({ reasonCode: 0x90, length: 3 });
    expect(second).toMatchObject({ messageId: 2, reasonCode: 0 });
    expect(first?.properties).toBeUndefined();
  });

  test('that is no success ends a message of QoS 2: its identifier is free', async () => {
    await start();
    const raw = await enter5();
    for (let n = 1; n <= 150; n += 1)
      raw.send(publishPacket(`${up}/state`, '{', { qos: 2, messageId: n }));
    await raw.expect('pubrec', 150);
    raw.send(publishPacket(`${up}/state`, { puId: 1, stId: 1 }, { qos: 2, messageId: 1 }));
    expect((await raw.expect('pubrec', 151))[150]).toMatchObject({ messageId: 1, reasonCode: 0 });
    expect(world.store.stored).toHaveLength(151);
  });

  test('of both kinds leaves in the order of the messages', async () => {
    await start();
    world.store.isHolding = true;
    const raw = await enter5();
    for (let n = 1; n <= 60; n += 1)
      raw.send(
        publishPacket(`${up}/state`, n % 3 ? { puId: 1, stId: n } : '{', {
          qos: n % 2 ? 1 : 2,
          messageId: n,
        }),
      );
    await until(() => world.store.held.length === 60);
    expect(raw.received.map(({ cmd }) => cmd)).toEqual(['connack']);
    for (const { commit } of world.store.held.splice(0).toReversed()) commit();
    await until(() => raw.received.length === 61);
    expect(raw.received.slice(1).map(({ messageId }) => messageId)).toEqual(
      Array.from({ length: 60 }, (_, n) => n + 1),
    );
  });
});

describe('a connection that the service ends is told why', () => {
  const goodbye = async (raw: RawClient) => {
    await raw.ended();
    return raw.of('disconnect').map(({ reasonCode }) => reasonCode);
  };

  test('its keep-alive', async () => {
    const clock = manualClock();
    await start({ now: clock.now });
    const raw = await enter5({ keepalive: 10 });
    await until(() => world.counted.includes('connected'));
    clock.nowMs += 15_100;
    expect(await goodbye(raw)).toEqual([0x8d]);
  });

  test('its session was taken over', async () => {
    await start();
    const raw = await enter5();
    await enter5();
    expect(await goodbye(raw)).toEqual([0x8e]);
  });

  test('the device has more connections than it may', async () => {
    await start();
    const raw = await enter5({ clientId: '0' });
    for (const clientId of ['1', '2', '3', '4']) await enter5({ clientId });
    expect(await goodbye(raw)).toEqual([0x97]);
  });

  test('the device was removed', async () => {
    await start();
    const raw = await enter5();
    world.store.removeDevice(world.device.uuid);
    expect(await goodbye(raw)).toEqual([0x87]);
  });

  test('a message could not be stored, and is not acknowledged', async () => {
    await start();
    world.store.isHolding = true;
    const raw = await enter5();
    raw.send(publishPacket(`${up}/state`, '{}', { qos: 1, messageId: 1 }));
    await until(() => world.store.held.length === 1);
    world.store.held[0]?.fail(new Error('no'));
    expect(await goodbye(raw)).toEqual([0x89]);
    expect(raw.of('puback')).toEqual([]);
  });

  test('the service stops, also with a message that is not stored', async () => {
    await start();
    world.store.isHolding = true;
    const [idle, busy] = [await enter5({ clientId: 'idle' }), await enter5({ clientId: 'busy' })];
    busy.send(publishPacket(`${up}/state`, '{}', { qos: 1, messageId: 1 }));
    await until(() => world.store.held.length === 1);
    await world.connector.close({ drainMs: 10 });
    expect([await goodbye(idle), await goodbye(busy)]).toEqual([[0x8b], [0x8b]]);
    expect(busy.of('puback')).toEqual([]);
  });
});

describe('what a device is sent', () => {
  const subscribe = async (raw: RawClient, qos: 0 | 1 | 2 = 1) => {
    raw.send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: `${down}/#`, qos }] });
    await raw.expect('suback');
  };
  const push = (message: Downlink) =>
    world.store.bus.publish('down', { uuid: world.device.uuid, message });
  const profile: Downlink = { topic: 'profile', payload: { pId: 'p', purposes: [] }, pId: 'p' };
  const large: Downlink = { ...profile, payload: { text: 'x'.repeat(1_000) } };

  test.each([0, 1, 2] as const)(
    'arrives at QoS %i, and is delivered when it is acknowledged',
    async (qos) => {
      await start();
      const raw = await enter5();
      await subscribe(raw, qos);
      push(profile);
      const [sent] = await raw.expect('publish');
      expect(sent).toMatchObject({
        topic: `${down}/profile`,
        qos: Math.min(qos, 1),
        retain: false,
      });
      expect(JSON.parse(sent?.payload.toString() ?? '')).toEqual(profile.payload);
      if (qos > 0) {
        expect(world.store.delivered).toEqual([]);
        raw.send({ cmd: 'puback', messageId: sent?.messageId ?? 0, reasonCode: 0x80 });
      }
      await until(() => world.store.delivered.length === 1);
      push(profile);
      expect((await raw.expect('publish', 2))[1]?.messageId).toBe(qos > 0 ? 2 : undefined);
    },
  );

  test('is never larger than it takes: a profile stays pending, with a remark', async () => {
    await start();
    const raw = await enter5({ properties: { maximumPacketSize: 500 } });
    await subscribe(raw);
    push(large);
    push({ ...profile, topic: 'configuration', pId: undefined });
    const [sent] = await raw.expect('publish');
    expect(sent?.topic).toBe(`${down}/configuration`);
    expect(world.store.delivered).toEqual([]);
    await until(() => world.store.stored.length === 1);
    expect(world.store.stored[0]?.uplink).toMatchObject({
      topic: `${down}/profile`,
      rejections: [{ reason: 'packet-too-large', message: expect.stringContaining('500') }],
    });
  });

  test('a text for its display says for how long it is of use, and does not come later', async () => {
    let ms = 1_767_225_600_000;
    await start({ ports: { clock: () => ms } });
    const raw = await enter5();
    await subscribe(raw);
    const { pId: _, ...text } = { ...profile, topic: 'display' as const };
    push({ ...text, payload: { text: 'a', ts: ms - 1_000 } });
    const [sent] = await raw.expect('publish');
    expect(sent?.properties).toEqual({ messageExpiryInterval: 86_399 });
    // It waits for the acknowledgement of the one before.
    push({ ...text, payload: { text: 'b', ts: ms } });
    push({ ...text, payload: { text: 'c', ts: ms + 1 } });
    ms += 86_400_000;
    raw.send({ cmd: 'puback', messageId: sent?.messageId ?? 0 });
    const [, next] = await raw.expect('publish', 2);
    expect(JSON.parse(next?.payload.toString() ?? '')).toMatchObject({ text: 'c' });
    expect(next?.properties).toEqual({ messageExpiryInterval: 1 });
  });

  test('waits for a client that does not read, and ends with it', async () => {
    await start({ tuning: { drainTimeoutMs: 200 } });
    const raw = await enter5();
    await subscribe(raw, 0);
    raw.socket.pause();
    await until(() => {
      push({ topic: 'display', payload: { text: 'x'.repeat(200_000) } });
      return world.counted.includes('disconnected unread');
    });
  });
});
