// Acknowledgements of MQTT 5: they state what became of a message's items.
import { afterEach, describe, expect, test } from 'vitest';
import { startWorld, until, type World, type WorldOptions } from './harness.ts';
import { enter, publishPacket, type Connect, type RawClient } from './raw.ts';

let world: World;
let up: string;
const start = async (options?: WorldOptions) => {
  world = await startWorld(options);
  up = `devices/${world.device.uuid}/up`;
};
afterEach(() => world.close());

const enter5 = (more: Partial<Connect> = {}): Promise<RawClient> =>
  enter(world, { protocolVersion: 5, ...more });

const good = { sId: '0x1', val: 1 };

describe('an acknowledgement', () => {
  const messages: [string, string, unknown, number, string | undefined, number][] = [
    ['of good items', 'measurements', [good, good], 0, undefined, 0],
    ['of some bad items', 'measurements', [good, { sId: 1 }, {}], 0, undefined, 2],
    [
      'of many bad items',
      'measurements',
      [good, ...Array.from({ length: 50 }, () => ({}))],
      0,
      undefined,
      50,
    ],
    ['of an empty list', 'measurements', [], 0, undefined, 0],
    ['of a member that has no effect', 'measurements', { ...good, unit: 'C' }, 0, undefined, 0],
    ['of bad items only', 'measurements', [{}, {}], 0x83, 'expected a sense', 2],
    ['of an invalid state', 'state', { puId: 'a' }, 0x83, 'expected number, found string', 1],
    ['of text that is not JSON', 'state', '{', 0x99, 'The payload is not JSON', 1],
    ['of an unknown topic', 'weather', '1', 0x90, 'Devices publish to measurements', 1],
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

  test('of bytes that are not UTF-8 is 0x99', async () => {
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
    ['accepts no packet large enough for them', { maximumPacketSize: 70 }],
  ])('has only its code if the client %s', async (_what, properties) => {
    await start();
    const raw = await enter5({ properties });
    raw.send(publishPacket(`${up}/weather`, '1', { qos: 1, messageId: 1 }));
    raw.send(publishPacket(`${up}/measurements`, [good, {}], { qos: 1, messageId: 2 }));
    const [first, second] = await raw.expect('puback', 2);
    expect(first).toMatchObject({ reasonCode: 0x90, length: 3 });
    expect(second).toMatchObject({ messageId: 2, reasonCode: 0 });
    expect(first?.properties).toBeUndefined();
  });

  test('that is an error ends a message of QoS 2: its identifier is free', async () => {
    await start();
    const raw = await enter5();
    for (let n = 1; n <= 150; n += 1)
      raw.send(publishPacket(`${up}/state`, '{', { qos: 2, messageId: n }));
    await raw.expect('pubrec', 150);
    raw.send(publishPacket(`${up}/state`, { puId: 1, stId: 1 }, { qos: 2, messageId: 1 }));
    expect((await raw.expect('pubrec', 151))[150]).toMatchObject({ messageId: 1, reasonCode: 0 });
    expect(world.store.stored).toHaveLength(151);
  });

  test('of either kind leaves in the order of the messages', async () => {
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
