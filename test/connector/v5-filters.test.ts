// SUBSCRIBE and UNSUBSCRIBE in MQTT 5. docs/mqtt5.md names the clause for each of these tests.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startWorld, type World } from './harness.ts';
import { goodbye, enter, type Connect, type RawClient } from './raw.ts';
import { id, join, none, packet, properties, text, userProperty } from './v5-bytes.ts';

let world: World;
let down: string;
beforeEach(async () => {
  world = await startWorld();
  down = `devices/${world.device.uuid}/down`;
});
afterEach(() => world.close());

const enter5 = (more: Partial<Connect> = {}): Promise<RawClient> =>
  enter(world, { protocolVersion: 5, ...more });

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
    [
      'No Local on a shared subscription',
      () => packet(0x82, id(1), none, text('$share/a/b'), 5),
      0x82,
    ],
    ['flags other than 2', () => packet(0x80, id(1), none, all(), 1), 0x81],
    ['an empty filter', () => packet(0x82, id(1), none, text(''), 1), 0x8f],
    ['# before the end', () => packet(0x82, id(1), none, text('#/a'), 1), 0x8f],
    ['# among other characters', () => packet(0x82, id(1), none, text('a#'), 1), 0x8f],
    ['+ among other characters', () => packet(0x82, id(1), none, text('a/+b'), 1), 0x8f],
    [
      'a filter of nine levels',
      () => packet(0x82, id(1), none, text('a/a/a/a/a/a/a/a/a'), 1),
      0x8f,
    ],
    [
      'a filter that is not UTF-8',
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

  test('get a code for each filter', async () => {
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
