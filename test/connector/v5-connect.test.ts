// CONNECT and CONNACK in MQTT 5. docs/mqtt5.md names the clause for each of these tests.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startWorld, until, type World } from './harness.ts';
import { goodbye, dial, connectPacket, enter, type Connect, type RawClient } from './raw.ts';
import { connect, join, none, properties, text, userProperty } from './v5-bytes.ts';

let world: World;
let up: string;
beforeEach(async () => {
  world = await startWorld();
  up = `devices/${world.device.uuid}/up`;
});
afterEach(() => world.close());

const enter5 = (more: Partial<Connect> = {}): Promise<RawClient> =>
  enter(world, { protocolVersion: 5, ...more });

describe('CONNECT', () => {
  const answerTo = async (bytes: Buffer) => {
    const raw = await dial(world, 5);
    raw.socket.write(bytes);
    await raw.ended();
    return raw.of('connack')[0]?.reasonCode;
  };
  const four = (value: number) => join(0, 0, 0, value);
  const will = (field: Buffer, topic: string) => join(field, text(topic), text('{}'));

  test.each([
    ['a receive maximum of 0', properties(0x21, 0, 0), 0x82],
    ['a maximum packet size of 0', properties(0x27, four(0)), 0x82],
    ['a request problem information of 2', properties(0x17, 2), 0x82],
    ['a request response information of 2', properties(0x19, 2), 0x82],
    ['authentication data without a method', properties(0x16, text('x')), 0x82],
    ['an authentication method', properties(0x15, text('SCRAM-SHA-1')), 0x8c],
    ['the same property twice', properties(0x21, 0, 1, 0x21, 0, 1), 0x82],
    ['a property of another packet', properties(0x23, 0, 1), 0x82],
    ['an unknown property', properties(0x7f, 1), 0x82],
    ['properties longer than the packet', join(0xff, 0x7f), 0x81],
    ['a property length that does not end', join(0xff, 0xff, 0xff, 0xff, 1), 0x81],
    ['a property that is cut off', properties(0x27, 0, 0), 0x81],
    ['a text that is not UTF-8', properties(userProperty('a', 'b'), 0x26, 0, 1, 0xff, 0, 0), 0x81],
    ['a text with U+0000', properties(userProperty('a', '\0')), 0x81],
    ['a maximum packet size below the CONNACK', properties(0x27, four(63)), 0x95],
    ['one below the shortest CONNACK, which gets no answer', properties(0x27, four(4)), undefined],
  ])('with %s is refused', async (_what, field, code) => {
    expect(await answerTo(connect(world.device, field))).toBe(code);
    await until(() => world.counted.length > 0);
    expect(world.counted).toEqual(['refused malformed']);
    expect(world.store.checks).toBe(0);
  });

  test.each([
    ['a reserved flag', { flags: 0xc3 }, 0x81],
    ['a will QoS of 3', { flags: 0xde, will: will(none, 'x') }, 0x81],
    ['a will QoS without a will', { flags: 0xca }, 0x81],
    ['a retained will', { flags: 0xe6, will: will(none, 'x') }, 0x9a],
    ['a will topic with a wildcard', { flags: 0xc6, will: will(none, 'a/#') }, 0x90],
    [
      'a property of PUBLISH in its will',
      { flags: 0xc6, will: will(properties(0x23, 0, 1), 'x') },
      0x82,
    ],
    ['a missing password', { flags: 0x82 }, 0x81],
  ])('with %s is refused', async (_what, more, code) => {
    expect(await answerTo(connect(world.device, none, more))).toBe(code);
  });

  test('with every allowed property is accepted', async () => {
    const field = properties(
      join(0x11, 0, 0, 1, 0),
      join(0x21, 0, 10),
      join(0x27, 0, 1, 0, 0),
      join(0x22, 0, 5),
      join(0x19, 1),
      join(0x17, 0),
      userProperty('a', 'b'),
      userProperty('a', 'c'),
    );
    const message = join(0x18, 0, 0, 0, 9, 1, 1, 2, 0, 0, 0, 9, 3, text('t'), 8, text('r'), 9);
    const ofWill = properties(message, text('c'), userProperty('a', 'b'));
    const raw = await dial(world, 5);
    const given = will(ofWill, `${up}/state`);
    raw.socket.write(connect(world.device, field, { flags: 0xc6, will: given }));
    expect(await raw.expect('connack')).toMatchObject([{ reasonCode: 0, sessionPresent: false }]);
    raw.socket.destroy();
    // The session ends with its connection, so the will is not delayed.
    await until(() => world.store.stored.length === 1);
  });

  test('is answered with the limits', async () => {
    const raw = await enter5();
    expect(raw.of('connack')[0]?.properties).toEqual({
      sessionExpiryInterval: 0,
      receiveMaximum: 100,
      retainAvailable: false,
      maximumPacketSize: 65_536,
      topicAliasMaximum: 0,
      subscriptionIdentifiersAvailable: false,
      sharedSubscriptionAvailable: false,
      serverKeepAlive: 3_600,
    });
  });

  test.each([
    [0, 3_600],
    [60, undefined],
    [3_600, undefined],
    [3_601, 3_600],
  ])('with a keep-alive of %i is answered %s', async (keepalive, answer) => {
    const raw = await enter5({ keepalive });
    expect(raw.of('connack')[0]?.properties?.serverKeepAlive).toBe(answer);
  });

  test('without an identifier is assigned one, with which the session can be taken over', async () => {
    const raw = await dial(world, 5);
    raw.socket.write(connect(world.device, none, { flags: 0xc0, clientId: '' }));
    await raw.expect('connack');
    const assigned = raw.of('connack')[0]?.properties?.assignedClientIdentifier ?? '';
    expect(assigned).not.toBe('');
    const other = await enter5({ clientId: '' });
    expect(other.of('connack')[0]?.properties?.assignedClientIdentifier).not.toBe(assigned);
    const again = await enter5({ clientId: assigned });
    expect(again.of('connack')[0]?.properties?.assignedClientIdentifier).toBeUndefined();
    expect(await goodbye(raw)).toBe(0x8e);
    expect(other.isClosed).toBe(false);
  });

  test.each([
    ['a wrong token', { password: Buffer.from('wrong') }, 0x87],
    ['no credentials', { username: undefined, password: undefined }, 0x87],
    [
      'a foreign will',
      { will: { topic: 'x', payload: Buffer.from(''), qos: 0, retain: false } },
      0x87,
    ],
  ] as const)('with %s gets its reason code', async (_what, more, code) => {
    const raw = await enter5(more);
    expect(raw.of('connack')).toMatchObject([{ reasonCode: code }]);
    await raw.ended();
  });

  test('is answered 0x88 while the store is away', async () => {
    world.store.isAway = true;
    const raw = await enter5();
    expect(raw.of('connack')).toMatchObject([{ reasonCode: 0x88 }]);
    await raw.ended();
  });

  test('that comes again ends the connection', async () => {
    const raw = await enter5();
    raw.send(connectPacket(world, { protocolVersion: 5 }));
    expect(await goodbye(raw)).toBe(0x82);
  });
});
