// What strangers and broken clients of MQTT 5 may do with the fields that 3.1.1 does not have.
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startWorld, until, type World } from './harness.ts';
import { enter, publishPacket, type RawClient } from './raw.ts';
import { id, join, none, packet, properties, text, userProperty } from './v5-bytes.ts';

const repeated = (part: Buffer, bytes: number): Buffer =>
  properties(...Array<Buffer>(Math.floor(bytes / part.length)).fill(part));
/** As many bytes of properties as fit into a packet. */
const most = 65_300;

describe('a connection', () => {
  let world: World;
  let up: string;
  beforeEach(async () => {
    world = await startWorld({
      limits: { messagesPerSecond: 10_000, measurementsPerSecond: 100_000, reconnectsBurst: 1_000 },
    });
    up = `devices/${world.device.uuid}/up`;
  });
  afterEach(() => world.close());
  const enter5 = (): Promise<RawClient> => enter(world, { protocolVersion: 5, clientId: '' });
  const publish = (field: Buffer, n: number) =>
    packet(0x32, text(`${up}/state`), id(n), field, '{"puId":1,"stId":1}');

  test.each([
    ['thirteen thousand empty pairs', userProperty('', '')],
    ['names of object members', userProperty('__proto__', 'constructor')],
    ['characters of two bytes', userProperty('ä', 'ö')],
    ['one long pair', userProperty('x'.repeat(30_000), 'y'.repeat(35_000))],
  ])('with 64 KiB of user properties is served: %s', async (_what, part) => {
    const raw = await enter5();
    for (let n = 1; n <= 5; n += 1) raw.socket.write(publish(repeated(part, most), n));
    expect(await raw.expect('puback', 5)).toMatchObject(
      Array.from({ length: 5 }, () => ({ reasonCode: 0 })),
    );
    raw.socket.write(packet(0x82, id(1), repeated(part, most), text('a'), 0));
    await raw.expect('suback');
    raw.socket.write(packet(0x40, id(9), 0, repeated(part, most)));
    raw.send({ cmd: 'pingreq' });
    await raw.expect('pingresp');
    expect(({} as Record<string, unknown>)['constructor']).toBe(Object);
  });

  test('that sends a packet byte by byte is served, and its cost grows only with the bytes', async () => {
    const raw = await enter5();
    const bytes = publish(repeated(userProperty('', ''), 20_000), 1);
    raw.socket.setNoDelay(true);
    for (let at = 0; at < bytes.length; at += 1) {
      raw.socket.write(bytes.subarray(at, at + 1));
      if (at % 50 === 0) await new Promise(setImmediate);
    }
    await raw.expect('puback');
    expect(world.store.stored).toHaveLength(1);
    expect(world.connector.snapshot().midwayBytes).toBe(0);
  });

  test('that sends packets cut anywhere has all of them served', async () => {
    const raw = await enter5();
    const bytes = join(
      publish(none, 1),
      packet(0x82, id(1), properties(userProperty('a', 'b')), text('a'), 0),
      publish(properties(userProperty('a', 'b')), 2),
      packet(0xc0),
      publish(none, 3),
    );
    const cuts = Array.from({ length: bytes.length - 1 }, (_, n) => n + 1).filter(
      (n) => n % 5 === 1,
    );
    for (const [n, cut] of cuts.entries()) {
      raw.socket.write(bytes.subarray(0, cut));
      await new Promise(setImmediate);
      raw.socket.write(bytes.subarray(cut));
      await raw.expect('pingresp', n + 1);
    }
    await raw.expect('puback', 3 * cuts.length);
    expect(raw.of('suback')).toHaveLength(cuts.length);
  });

  test('with the costliest properties is read no faster than measurements that cost as much', async () => {
    await world.close();
    world = await startWorld({ limits: { measurementsPerSecond: 1_000 } });
    up = `devices/${world.device.uuid}/up`;
    const raw = await enter5();
    const field = repeated(userProperty('', ''), most);
    for (let n = 1; n <= 10; n += 1) raw.socket.write(publish(field, n));
    await raw.expect('puback', 1);
    const { uuid, token } = world.store.addDevice(2);
    const password = Buffer.from(token);
    const others = await enter(world, { username: uuid, password, protocolVersion: 5 });
    others.send({ cmd: 'pingreq' });
    await raw.expect('puback', 2);
    // Two of these are a second's worth of measurements, so the third waits.
    expect(world.store.stored.length).toBeLessThan(10);
    await others.expect('pingresp');
  });

  test('with packets cut off, doubled or wrong about their length harms nobody else', async () => {
    const packets = [
      publish(properties(userProperty('a', 'b')), 1),
      packet(0x82, id(1), properties(userProperty('a', 'b')), text('a/#'), 1),
      packet(0xa2, id(1), none, text('a')),
      packet(0x62, id(1), 0, none),
      packet(0xe0, 0, properties(0x11, 0, 0, 0, 0)),
    ];
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...packets),
        fc.array(fc.tuple(fc.nat(60), fc.nat(255)), { minLength: 1, maxLength: 4 }),
        async (whole, changes) => {
          const bytes = Buffer.from(whole);
          for (const [at, value] of changes) bytes[at % bytes.length] = value;
          const raw = await enter5();
          raw.socket.end(bytes);
          await raw.ended();
        },
      ),
      { numRuns: 150 },
    );
    const raw = await enter5();
    raw.send(publishPacket(`${up}/state`, { puId: 1, stId: 1 }, { qos: 1, messageId: 1 }));
    await raw.expect('puback');
    expect(world.logged).toEqual([]);
    await until(() => world.connector.snapshot().connections === 1);
  });
});
