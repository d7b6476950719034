// Acknowledgements, PINGREQ, DISCONNECT and AUTH in MQTT 5. docs/mqtt5.md names the clause for each of these tests.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startWorld, until, type World } from './harness.ts';
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

describe('other packets', () => {
  test.each([
    ['AUTH', () => packet(0xf0, 0x18, none), 0x82],
    ['a packet that only servers send', () => packet(0xd0), 0x82],
    ['PINGREQ with flags', () => packet(0xc1), 0x81],
    ['PUBREL without its flag', () => packet(0x60, id(1)), 0x81],
    ['PUBACK with an unknown reason code', () => packet(0x40, id(1), 0x42), 0x81],
    [
      'PUBACK with a property of another packet',
      () => packet(0x40, id(1), 0, properties(1, 1)),
      0x82,
    ],
    ['PUBACK with bytes after its properties', () => packet(0x40, id(1), 0, none, 1), 0x81],
    ['DISCONNECT with flags', () => packet(0xe1), 0x81],
    ['DISCONNECT with a reason code of servers', () => packet(0xe0, 0x8b), 0x81],
    [
      'DISCONNECT that keeps a session meant to end',
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

  test('PUBREL is answered, with or without properties', async () => {
    const raw = await enter5();
    raw.socket.write(packet(0x34, text(`${up}/state`), id(1), none, '{"puId":1,"stId":1}'));
    await raw.expect('pubrec');
    raw.socket.write(packet(0x62, id(1), 0, properties(userProperty('a', 'b'))));
    expect(await raw.expect('pubcomp')).toMatchObject([{ messageId: 1, reasonCode: 0 }]);
  });
});
