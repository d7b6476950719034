// PUBLISH in MQTT 5. docs/mqtt5.md names the clause for each of these tests.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startWorld, type World } from './harness.ts';
import { goodbye, enter, type Connect, type RawClient } from './raw.ts';
import { id, join, none, packet, properties, text, userProperty } from './v5-bytes.ts';

let world: World;
let up: string;
beforeEach(async () => {
  world = await startWorld();
  up = `devices/${world.device.uuid}/up`;
});
afterEach(() => world.close());

const enter5 = (more: Partial<Connect> = {}): Promise<RawClient> =>
  enter(world, { protocolVersion: 5, ...more });

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
      'an alias instead of its topic',
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
      'a topic that is not UTF-8',
      () => packet(0x32, text(Buffer.from([0xff])), id(1), none, body),
      0x81,
    ],
    [
      'a topic of another device',
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
    ['properties longer than the packet', () => packet(0x32, state(), id(1), 0x7f, 1, 1), 0x81],
    ['no properties field', () => packet(0x32, state(), id(1)), 0x81],
    ['a topic longer than the packet', () => packet(0x32, 0xff, 0xff, 'x'), 0x81],
  ])('with %s ends the connection', async (_what, bytesOf, code) => {
    const raw = await enter5();
    raw.socket.write(bytesOf());
    expect(await goodbye(raw)).toBe(code);
    // One outside its own topics is reported as a rejection.
    const kept = world.store.stored.map(({ uplink }) => uplink.rejections[0]?.reason);
    expect(kept).toEqual(code === 0x87 ? ['foreign-topic'] : []);
    expect(raw.of('puback')).toEqual([]);
  });

  test('with every allowed property is stored', async () => {
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
