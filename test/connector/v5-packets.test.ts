// What MQTT 5 says of single packets. docs/mqtt5.md names the clause for each of these tests.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startWorld, until, type World } from './harness.ts';
import { connectPacket, dial, enter, type Connect, type RawClient } from './raw.ts';
import { connect, id, join, none, packet, properties, text, userProperty } from './v5-bytes.ts';

let world: World;
let up: string;
let down: string;
beforeEach(async () => {
  world = await startWorld();
  up = `devices/${world.device.uuid}/up`;
  down = `devices/${world.device.uuid}/down`;
});
afterEach(() => world.close());

const enter5 = (more: Partial<Connect> = {}): Promise<RawClient> =>
  enter(world, { protocolVersion: 5, ...more });

/** The reason code that the service gives for closing the connection. */
async function goodbye(raw: RawClient): Promise<number | undefined> {
  await raw.ended();
  return raw.of('disconnect')[0]?.reasonCode;
}

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
    ['a property that there is not', properties(0x7f, 1), 0x82],
    ['properties longer than the packet', join(0xff, 0x7f), 0x81],
    ['a length of properties that does not end', join(0xff, 0xff, 0xff, 0xff, 1), 0x81],
    ['a property that is cut off', properties(0x27, 0, 0), 0x81],
    ['a text that is no UTF-8', properties(userProperty('a', 'b'), 0x26, 0, 1, 0xff, 0, 0), 0x81],
    ['a text with U+0000', properties(userProperty('a', '\0')), 0x81],
    ['a maximum packet size below the CONNACK', properties(0x27, four(63)), 0x95],
    ['one below the shortest CONNACK, which gets none', properties(0x27, four(4)), undefined],
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
    ['a will that is to be retained', { flags: 0xe6, will: will(none, 'x') }, 0x9a],
    ['a will topic with a wildcard', { flags: 0xc6, will: will(none, 'a/#') }, 0x90],
    [
      'a property of PUBLISH in its will',
      { flags: 0xc6, will: will(properties(0x23, 0, 1), 'x') },
      0x82,
    ],
    ['no password where there is one', { flags: 0x82 }, 0x81],
  ])('with %s is refused', async (_what, more, code) => {
    expect(await answerTo(connect(world.device, none, more))).toBe(code);
  });

  test('with every property that it may have is let in', async () => {
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
    // The session ends with its connection, and so the will is not delayed.
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

  test('without an identifier is given one, by which the session is taken over', async () => {
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
  ] as const)('with %s is answered its reason code', async (_what, more, code) => {
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

describe('PUBLISH', () => {
  const state = () => text(`${up}/state`);
  const body = '{"puId":1,"stId":1}';

  test.each([
    ['QoS 3', () => packet(0x36, state(), id(1), none, body), 0x81],
    ['DUP at QoS 0', () => packet(0x38, state(), none, body), 0x81],
    ['RETAIN', () => packet(0x33, state(), id(1), none, body), 0x9a],
    ['packet identifier 0', () => packet(0x32, state(), id(0), none, body), 0x82],
    ['a topic alias', () => packet(0x32, state(), id(1), properties(0x23, 0, 1), body), 0x94],
    [
      'an alias for its topic',
      () => packet(0x32, text(''), id(1), properties(0x23, 0, 1), body),
      0x94,
    ],
    ['no topic', () => packet(0x32, text(''), id(1), none, body), 0x82],
    ['a wildcard in its topic', () => packet(0x32, text(`${up}/#`), id(1), none, body), 0x90],
    [
      'a topic of nine levels',
      () => packet(0x32, text(`${up}/a/b/c/d/e/f`), id(1), none, body),
      0x90,
    ],
    [
      'a topic that is no UTF-8',
      () => packet(0x32, text(Buffer.from([0xff])), id(1), none, body),
      0x81,
    ],
    [
      'a topic of somebody else',
      () => packet(0x32, text('devices/x/up/state'), id(1), none, body),
      0x87,
    ],
    ['a foreign topic at QoS 0', () => packet(0x30, text('a'), none, body), 0x87],
    [
      'a subscription identifier',
      () => packet(0x32, state(), id(1), properties(0x0b, 1), body),
      0x82,
    ],
    [
      'a wildcard in its response topic',
      () => packet(0x32, state(), id(1), properties(8, text('+')), body),
      0x82,
    ],
    ['a payload format of 2', () => packet(0x32, state(), id(1), properties(1, 2), body), 0x82],
    [
      'two content types',
      () => packet(0x32, state(), id(1), properties(3, text(''), 3, text('')), body),
      0x82,
    ],
    ['properties longer than it is', () => packet(0x32, state(), id(1), 0x7f, 1, 1), 0x81],
    ['no properties field', () => packet(0x32, state(), id(1)), 0x81],
    ['a topic longer than it is', () => packet(0x32, 0xff, 0xff, 'x'), 0x81],
  ])('with %s ends the connection', async (_what, bytesOf, code) => {
    const raw = await enter5();
    raw.socket.write(bytesOf());
    expect(await goodbye(raw)).toBe(code);
    expect(world.store.stored).toEqual([]);
    expect(raw.of('puback')).toEqual([]);
  });

  test('with every property that it may have is stored', async () => {
    const raw = await enter5();
    const field = properties(
      join(1, 1, 2, 0, 0, 0, 1, 3, text('application/json'), 8, text('a/b'), 9, text('x')),
      userProperty('a', 'b'),
      userProperty('a', 'b'),
    );
    for (const [n, first] of [0x30, 0x32, 0x3a, 0x34].entries())
      raw.socket.write(packet(first, state(), n ? id(n) : '', field, body));
    await raw.expect('pubrec');
    const contents = world.store.stored.map(({ uplink }) => uplink.content);
    const content = { kind: 'state', report: { puId: 1, stId: 1 } };
    expect(contents).toEqual([content, content, content, content]);
  });

  test('of more than the maximum packet size ends the connection', async () => {
    const raw = await enter5();
    raw.socket.write(packet(0x30, text(`${up}/state`), none, 'x'.repeat(65_536)));
    expect(await goodbye(raw)).toBe(0x95);
  });

  test('of QoS 2 beyond the receive maximum ends the connection', async () => {
    const raw = await enter5();
    for (let n = 1; n <= 100; n += 1) raw.socket.write(packet(0x34, state(), id(n), none, body));
    await raw.expect('pubrec', 100);
    raw.socket.write(packet(0x34, state(), id(101), none, body));
    expect(await goodbye(raw)).toBe(0x93);
  });
});

describe('SUBSCRIBE and UNSUBSCRIBE', () => {
  const all = () => text(`${down}/#`);

  test.each([
    ['a subscription identifier', () => packet(0x82, id(1), properties(0x0b, 1), all(), 1), 0xa1],
    [
      'a subscription identifier of 0',
      () => packet(0x82, id(1), properties(0x0b, 0), all(), 1),
      0x82,
    ],
    ['no filter', () => packet(0x82, id(1), none), 0x82],
    ['packet identifier 0', () => packet(0x82, id(0), none, all(), 1), 0x82],
    ['reserved option bits', () => packet(0x82, id(1), none, all(), 0x41), 0x81],
    ['QoS 3', () => packet(0x82, id(1), none, all(), 3), 0x82],
    ['a retain handling of 3', () => packet(0x82, id(1), none, all(), 0x31), 0x82],
    ['No Local on a shared one', () => packet(0x82, id(1), none, text('$share/a/b'), 5), 0x82],
    ['flags other than 2', () => packet(0x80, id(1), none, all(), 1), 0x81],
    ['an empty filter', () => packet(0x82, id(1), none, text(''), 1), 0x8f],
    ['# before the end', () => packet(0x82, id(1), none, text('#/a'), 1), 0x8f],
    ['# beside other letters', () => packet(0x82, id(1), none, text('a#'), 1), 0x8f],
    ['+ beside other letters', () => packet(0x82, id(1), none, text('a/+b'), 1), 0x8f],
    [
      'a filter of nine levels',
      () => packet(0x82, id(1), none, text('a/a/a/a/a/a/a/a/a'), 1),
      0x8f,
    ],
    [
      'a filter that is no UTF-8',
      () => packet(0x82, id(1), none, text(Buffer.from([0xc0])), 1),
      0x81,
    ],
    ['no options', () => packet(0x82, id(1), none, all()), 0x81],
    [
      'more filters than a connection may have',
      () => packet(0x82, id(1), none, ...Array<Buffer>(1_200).fill(join(text('a'), 0))),
      0x95,
    ],
    ['no filter (UNSUBSCRIBE)', () => packet(0xa2, id(1), none), 0x82],
    ['flags other than 2 (UNSUBSCRIBE)', () => packet(0xa0, id(1), none, all()), 0x81],
    [
      'a property of another packet (UNSUBSCRIBE)',
      () => packet(0xa2, id(1), properties(0x0b, 1), all()),
      0x82,
    ],
  ])('with %s ends the connection', async (_what, bytesOf, code) => {
    const raw = await enter5();
    raw.socket.write(bytesOf());
    expect(await goodbye(raw)).toBe(code);
    expect(raw.of('suback')).toEqual([]);
  });

  test('are answered a code for each filter', async () => {
    const raw = await enter5();
    const filters = [
      `${down}/#`,
      '#',
      '$share/g/a',
      `${down}/display`,
      `${down}/display`,
      '__proto__',
    ];
    const options = [2, 1, 1, 0x2c, 1, 1];
    const parts = filters.map((filter, n) => join(text(filter), options[n] ?? 0));
    raw.socket.write(packet(0x82, id(9), properties(userProperty('a', 'b')), ...parts));
    const codes = [2, 0x87, 0x9e, 0, 1, 0x87];
    expect(await raw.expect('suback')).toMatchObject([{ messageId: 9, codes }]);
    const left = ['nothing', `${down}/display`, 'constructor', '__proto__', `${down}/display`];
    raw.socket.write(packet(0xa2, id(10), properties(userProperty('a', 'b')), ...left.map(text)));
    const [unsuback] = await raw.expect('unsuback');
    expect(unsuback).toMatchObject({ messageId: 10, granted: [0x11, 0, 0x11, 0x11, 0] });
  });
});

describe('other packets', () => {
  test.each([
    ['AUTH', () => packet(0xf0, 0x18, none), 0x82],
    ['a packet that only servers send', () => packet(0xd0), 0x82],
    ['PINGREQ with flags', () => packet(0xc1), 0x81],
    ['PUBREL without its flag', () => packet(0x60, id(1)), 0x81],
    ['PUBACK with a reason code that there is not', () => packet(0x40, id(1), 0x42), 0x81],
    [
      'PUBACK with a property of another packet',
      () => packet(0x40, id(1), 0, properties(1, 1)),
      0x82,
    ],
    ['PUBACK with bytes behind its properties', () => packet(0x40, id(1), 0, none, 1), 0x81],
    ['DISCONNECT with flags', () => packet(0xe1), 0x81],
    ['DISCONNECT with a reason code of servers', () => packet(0xe0, 0x8b), 0x81],
    [
      'DISCONNECT that keeps a session that was to end',
      () => packet(0xe0, 0, properties(0x11, 0, 0, 0, 9)),
      0x82,
    ],
  ])('%s ends the connection', async (_what, bytesOf, code) => {
    const raw = await enter5();
    raw.socket.write(bytesOf());
    expect(await goodbye(raw)).toBe(code);
  });

  const will = () => ({
    topic: `${up}/state`,
    payload: Buffer.from('{"puId":1,"stId":1}'),
    qos: 1 as const,
    retain: false,
  });

  test.each([
    ['0x04 is followed by its will', 'that asks for it', packet(0xe0, 4), 1],
    ['is not followed by its will', 'that says nothing', packet(0xe0), 0],
    [
      'is not followed by its will',
      'with properties',
      packet(0xe0, 0, properties(0x1f, text('bye'))),
      0,
    ],
    [
      'is followed by nothing',
      'and then a PUBLISH',
      join(packet(0xe0), packet(0x30, text('x'), none)),
      0,
    ],
  ])('DISCONNECT %s: %s', async (_what, _how, bytes, wills) => {
    const raw = await enter5({ will: will() });
    raw.socket.write(bytes);
    await raw.ended();
    await until(() => world.store.presence.length === 2);
    expect(raw.of('disconnect')).toEqual([]);
    expect(world.store.stored).toHaveLength(wills);
  });

  test('PUBREL is answered, with properties as without', async () => {
    const raw = await enter5();
    raw.socket.write(packet(0x34, text(`${up}/state`), id(1), none, '{"puId":1,"stId":1}'));
    await raw.expect('pubrec');
    raw.socket.write(packet(0x62, id(1), 0, properties(userProperty('a', 'b'))));
    expect(await raw.expect('pubcomp')).toMatchObject([{ messageId: 1, reasonCode: 0 }]);
  });
});
