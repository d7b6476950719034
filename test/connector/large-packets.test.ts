import { afterEach, describe, expect, test } from 'vitest';
import { generate } from 'mqtt-packet';
import { manualClock, startWorld, until, wire, type World, type WorldOptions } from './harness.ts';
import { connectPacket, dial, enter, goodbye, publishPacket, type RawClient } from './raw.ts';

const most = 262_144;
const tooLarge = () => ({ 4: undefined, 5: 0x95 })[wire.version];

let world: World;
let up: string;
const start = async ({ limits, ...more }: WorldOptions = {}) => {
  world = await startWorld({
    ...more,
    limits: { maxMeasurementPacketBytes: most, ...limits },
  });
  up = `devices/${world.device.uuid}/up`;
};
afterEach(() => world.close());

/** A PUBLISH of exactly this many bytes: a measurement, and blanks. */
function publishOf(bytes: number, topic = `${up}/measurements`, messageId = 1): Buffer {
  const head = 1 + 3 + 2 + topic.length + 2 + (wire.version === 5 ? 1 : 0);
  const payload = '{"sId":"0x1","val":1}'.padEnd(bytes - head);
  const packet = publishPacket(topic, payload, { qos: 1, messageId });
  return generate(packet, { protocolVersion: wire.version });
}

/** The packet up to the end of its topic. */
const headOf = (packet: Buffer) => packet.subarray(0, 4 + 2 + `${up}/measurements`.length);

const isMidway = (bytes: number) =>
  until(() => world.connector.snapshot().midwayBytes === bytes, `${bytes} bytes`);

describe('measurements', () => {
  test('of 256 KiB are taken, one byte more closes the connection when its length is read', async () => {
    await start();
    const fits = await enter(world, { clientId: 'fits' });
    fits.socket.write(publishOf(most));
    expect(await fits.expect('puback')).toMatchObject([{ messageId: 1 }]);
    const large = await enter(world, { clientId: 'large' });
    large.socket.write(publishOf(most + 1).subarray(0, 4));
    expect(await goodbye(large)).toBe(tooLarge());
    expect(world.store.stored.map(({ uplink }) => uplink.content)).toMatchObject([
      { kind: 'measurements', items: [{ value: { val: 1 } }] },
    ]);
    await isMidway(0);
  });

  test('that are cut anywhere, among others, are taken in order', async () => {
    await start();
    const raw = await enter(world);
    const sizes = [200, 100_000, 70_000, 65_536, most, 300, 65_537];
    const all = Buffer.concat(sizes.map((size, n) => publishOf(size, undefined, n + 1)));
    for (let at = 0, cut = 1; at < all.length; at += cut, cut = (cut * 7) % 40_009)
      raw.socket.write(all.subarray(at, at + cut));
    const acks = await raw.expect('puback', sizes.length);
    expect(acks.map(({ messageId }) => messageId)).toEqual(sizes.map((_, n) => n + 1));
    await isMidway(0);
  });

  test('are taken at QoS 0 and 2 too', async () => {
    await start();
    const raw = await enter(world);
    const payload = '{"sId":"0x1","val":1}'.padEnd(200_000);
    raw.send(publishPacket(`${up}/measurements`, payload));
    raw.send(publishPacket(`${up}/measurements`, payload, { qos: 2, messageId: 7 }));
    await raw.expect('pubrec');
    raw.send({ cmd: 'pubrel', messageId: 7 });
    await raw.expect('pubcomp');
    expect(world.store.stored).toHaveLength(2);
  });

  test('are as limited as all others by default', async () => {
    await start({ limits: { maxMeasurementPacketBytes: null } });
    const raw = await enter(world);
    raw.socket.write(publishOf(65_537).subarray(0, 4));
    expect(await goodbye(raw)).toBe(tooLarge());
  });
});

describe('nothing else is larger than 64 KiB', () => {
  test.each([
    'devices/x/up/measurements',
    '/up/state',
    '/up/events',
    '/up/configuration',
    '/up/measurement',
    '/up/measurementsx',
    '/down/display',
  ])('%s: closed before its payload arrives', async (path) => {
    await start();
    const raw = await enter(world);
    const topic = path.startsWith('/') ? `devices/${world.device.uuid}${path}` : path;
    raw.socket.write(publishOf(70_000, topic).subarray(0, 4 + 2 + topic.length));
    expect(await goodbye(raw)).toBe(tooLarge());
    expect(world.store.stored).toEqual([]);
    await until(() => world.counted.includes('disconnected malformed'));
  });

  test('nor is anything before the login', async () => {
    await start();
    const raw = await dial(world);
    raw.send(connectPacket(world, { clientId: 'x'.repeat(70_000) }));
    await raw.ended();
    const other = await dial(world);
    other.socket.write(publishOf(70_000));
    await other.ended();
    expect(world.store.checks).toBe(0);
  });

  test('nor a SUBSCRIBE', async () => {
    await start();
    const raw = await enter(world);
    raw.socket.write(Buffer.from([0x82, 0xf0, 0xa2, 0x04, 0, 1]));
    expect(await goodbye(raw)).toBe(tooLarge());
  });
});

describe('a packet that is arriving', () => {
  const size = 200_000;
  let devices = 1;
  const ofAccount = async (accountId: number) => {
    const { uuid, token } = world.store.addDevice((devices += 1), accountId);
    const raw = await enter(world, { username: uuid, password: Buffer.from(token) });
    const topic = `devices/${uuid}/up/measurements`;
    return { raw, topic, packet: publishOf(size, topic) };
  };
  /** All but the last byte. */
  const begin = ({ raw, packet }: { raw: RawClient; packet: Buffer }) =>
    raw.socket.write(packet.subarray(0, -1));
  const end = ({ raw, packet }: { raw: RawClient; packet: Buffer }) => {
    raw.socket.write(packet.subarray(-1));
    return raw.expect('puback');
  };

  test('is charged to its account as a whole; the account waits, and nobody else', async () => {
    await start({ tuning: { maxLargeBytes: 3.4 * size } });
    const [first, second, third] = [await ofAccount(1), await ofAccount(1), await ofAccount(1)];
    const other = await ofAccount(2);
    first.raw.socket.write(headOf(first.packet));
    await isMidway(size);
    begin(second);
    await isMidway(2 * size);
    first.raw.socket.write(first.packet.subarray(headOf(first.packet).length, -1));
    begin(third);
    begin(other);
    await isMidway(3 * size);
    // It is unread until one of its account's packets has ended.
    await end(other);
    await isMidway(2 * size);
    expect(third.raw.of('puback')).toEqual([]);
    await end(first);
    await isMidway(2 * size);
    await Promise.all([end(second), end(third)]);
    await isMidway(0);
    expect(world.store.stored).toHaveLength(4);
  });

  test('returns its room when its connection ends, even if it waits for room', async () => {
    await start({ tuning: { maxLargeBytes: size } });
    const [first, second, third] = [await ofAccount(1), await ofAccount(1), await ofAccount(1)];
    begin(first);
    await isMidway(size);
    begin(second);
    begin(third);
    // Its end is noticed when it is read, in its turn.
    second.raw.socket.destroy();
    first.raw.socket.destroy();
    await until(() => world.connector.snapshot().connections === 1);
    await end(third);
    await isMidway(0);
  });

  test('too slowly closes its connection, but not while it waits for room', async () => {
    const clock = manualClock();
    await start({ now: clock.now, tuning: { maxLargeBytes: size } });
    const [first, second] = [await ofAccount(1), await ofAccount(1)];
    begin(first);
    await isMidway(size);
    begin(second);
    clock.monotonicMs += 119_000;
    await clock.looks(3);
    expect(first.raw.isClosed).toBe(false);
    clock.monotonicMs += 2_000;
    expect(await goodbye(first.raw)).toBe({ 4: undefined, 5: 0x89 }[wire.version]);
    await until(() => world.counted.includes('disconnected unfinished'));
    await end(second);
    expect(world.store.stored).toHaveLength(1);
  });

  test('takes nothing from smaller packets', async () => {
    await start({ tuning: { maxBegunBytes: 50_000 } });
    const large = await ofAccount(1);
    const small = await ofAccount(2);
    small.packet = publishOf(40_000, small.topic);
    begin(small);
    await isMidway(small.packet.length - 1);
    begin(large);
    await isMidway(small.packet.length - 1 + size);
    await Promise.all([end(small), end(large)]);
  });
});
