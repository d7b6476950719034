import { afterEach, describe, expect, test } from 'vitest';
import type { Downlink } from '../../src/contract/uplink.ts';
import { manualClock, startWorld, until, wire, type World, type WorldOptions } from './harness.ts';
import { connectPacket, dial, enter, moments, publishPacket, refusedIn5 } from './raw.ts';

let world: World;
let up: string;
let down: string;
const start = async (options?: WorldOptions) => {
  world = await startWorld(options);
  up = `devices/${world.device.uuid}/up`;
  down = `devices/${world.device.uuid}/down`;
};
afterEach(() => world.close());

describe('sizes', () => {
  /** A PUBLISH of exactly this many bytes. */
  const publishOf = (bytes: number) => {
    const noProperties = wire.version === 5 ? 1 : 0;
    const head = 1 + 3 + 2 + `${up}/state`.length + 2 + noProperties;
    return publishPacket(`${up}/state`, 'x'.repeat(bytes - head), { qos: 1, messageId: 1 });
  };

  test('a packet of 64 KiB is taken, one byte more closes the connection', async () => {
    await start();
    const fits = await enter(world, { clientId: 'fits' });
    fits.send(publishOf(65_536));
    expect(await fits.expect('puback')).toHaveLength(1);
    const large = await enter(world, { clientId: 'large' });
    large.send(publishOf(65_537));
    await large.ended();
    expect(world.store.stored).toHaveLength(1);
    await until(() => world.counted.includes('disconnected malformed'));
  });

  test('a CONNECT of more than 4 KiB is not answered', async () => {
    await start();
    const raw = await dial(world);
    raw.send(connectPacket(world, { clientId: 'x'.repeat(4_097) }));
    await raw.ended();
    expect(raw.received).toEqual([]);
    await until(() => world.counted.includes('refused malformed'));
    expect(world.store.checks).toBe(0);
  });

  test('1,000 measurements are one message, 1,001 a rejection', async () => {
    await start();
    const client = await world.connect();
    const list = Array.from({ length: 1_001 }, (_, n) => ({ sId: '0x1', val: n }));
    const topic = `${up}/measurements`;
    await client.publishAsync(topic, JSON.stringify(list.slice(1)), { qos: 1 });
    await client.publishAsync(topic, JSON.stringify(list), { qos: 1 }).catch(refusedIn5);
    const [good, bad] = world.store.stored.map(({ uplink }) => uplink);
    expect(good?.rejections).toEqual([]);
    expect(good?.content).toMatchObject({ items: { length: 1_000 } });
    expect(bad?.rejections).toMatchObject([{ reason: 'invalid-payload', path: '' }]);
    expect(bad?.content).toMatchObject({ items: { length: 0 } });
  });
});

test('a client that sends no CONNECT in time is disconnected', async () => {
  await start({ limits: { connectTimeoutMs: 50 } });
  const raw = await dial(world);
  const half = await dial(world);
  half.socket.write(Buffer.from([0x10, 100, 0, 4]));
  await Promise.all([raw.ended(), half.ended()]);
  expect(world.counted).toEqual(['refused timeout', 'refused timeout']);
  expect(world.connector.snapshot().connections).toBe(0);
});

describe('topics', () => {
  test('8 levels are accepted, 9 close the connection', async () => {
    await start();
    const raw = await enter(world);
    raw.send(publishPacket(`${up}/4/5/6/7/8`, '1', { qos: 1, messageId: 1 }));
    await raw.expect('puback');
    expect(world.store.stored[0]?.uplink.rejections).toMatchObject([{ reason: 'unknown-topic' }]);
    raw.send(publishPacket(`${up}/4/5/6/7/8/9`, '1', { qos: 1, messageId: 2 }));
    await raw.ended();
    expect(world.store.stored).toHaveLength(1);
  });

  test('a filter of 9 levels closes the connection', async () => {
    await start();
    const raw = await enter(world);
    const topic = `${down}/4/5/6/7/8/#`;
    raw.send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic, qos: 1 }] });
    await raw.ended();
  });

  test('a filter given twice gets two return codes, in order; the last one counts', async () => {
    await start();
    const raw = await enter(world);
    const bytes: Buffer[] = [];
    raw.socket.on('data', (chunk: Buffer) => bytes.push(chunk));
    const own = `${down}/display`;
    const asked = (topic: string, qos: 0 | 1 | 2) => ({ topic, qos });
    const subscriptions = [asked(own, 1), asked('#', 1), asked(own, 0), asked('#', 1)];
    raw.send({ cmd: 'subscribe', messageId: 258, subscriptions });
    await raw.expect('suback');
    const suback = { 4: '9006010201800080', 5: '900701020001870087' }[wire.version];
    expect(Buffer.concat(bytes).toString('hex')).toBe(suback);
    const message: Downlink = { topic: 'display', payload: { text: 'once' } };
    world.store.bus.publish('down', { uuid: world.device.uuid, message });
    expect((await raw.expect('publish'))[0]).toMatchObject({ topic: own, qos: 0 });
    await moments(world);
    expect(raw.of('publish')).toHaveLength(1);
    expect(world.store.subscribedTo).toEqual([['display']]);
  });

  test('16 subscriptions a connection; the 17th is answered 128, a known one is not counted twice', async () => {
    await start();
    const raw = await enter(world);
    const filters = Array.from({ length: 17 }, (_, n) => ({
      topic: `${down}/${n}`,
      qos: 1 as const,
    }));
    raw.send({ cmd: 'subscribe', messageId: 1, subscriptions: filters });
    expect((await raw.expect('suback'))[0]?.granted).toEqual([...Array(16).fill(1), 128]);
    raw.send({ cmd: 'subscribe', messageId: 2, subscriptions: filters.slice(0, 1) });
    expect((await raw.expect('suback', 2))[1]?.granted).toEqual([1]);
    raw.send({ cmd: 'unsubscribe', messageId: 3, unsubscriptions: [`${down}/0`] });
    await raw.expect('unsuback');
    raw.send({ cmd: 'subscribe', messageId: 4, subscriptions: filters.slice(16) });
    expect((await raw.expect('suback', 3))[2]?.granted).toEqual([1]);
  });
});

describe('rates', () => {
  const slow = { messagesPerSecond: 100, messagesBurst: 20, measurementsPerSecond: 1_000 };

  test('beyond its burst a device is read at its rate, and nothing is dropped', async () => {
    const clock = manualClock();
    await start({ now: clock.now, limits: slow, tuning: { maxUnackedMessages: 10 } });
    const raw = await enter(world);
    for (let n = 1; n <= 60; n++)
      raw.send(publishPacket(`${up}/state`, { puId: 1, stId: n }, { qos: 1, messageId: n }));
    await raw.expect('puback', 20);
    await moments(world);
    const soFar = raw.of('puback').length;
    // A read goes into debt by at most its window.
    expect(soFar).toBeLessThanOrEqual(30);
    await until(() => {
      clock.monotonicMs += 10;
      return raw.of('puback').length === 60;
    });
    const acks = raw.of('puback');
    expect(acks.map(({ messageId }) => messageId)).toEqual(Array.from(acks, (_, n) => n + 1));
  });

  test('the rate applies to the device, over all its connections', async () => {
    const clock = manualClock();
    await start({ now: clock.now, limits: slow });
    const first = await enter(world, { clientId: 'first' });
    for (let n = 1; n <= 30; n++)
      first.send(publishPacket(`${up}/state`, { puId: 1, stId: n }, { qos: 1, messageId: n }));
    await first.expect('puback', 30);
    const second = await enter(world, { clientId: 'second' });
    second.send({ cmd: 'pingreq' });
    await moments(world);
    expect(second.of('pingresp')).toEqual([]);
    clock.monotonicMs += 1_000;
    await second.expect('pingresp');
  });

  test('reconnecting does not refill what was used up', async () => {
    const clock = manualClock();
    await start({ now: clock.now, limits: slow });
    const raw = await enter(world);
    for (let n = 1; n <= 30; n++)
      raw.send(publishPacket(`${up}/state`, { puId: 1, stId: n }, { qos: 1, messageId: n }));
    await raw.expect('puback', 30);
    raw.socket.destroy();
    await until(() => world.store.presence.length === 2);
    const again = await enter(world);
    again.send({ cmd: 'pingreq' });
    await moments(world);
    expect(again.of('pingresp')).toEqual([]);
  });

  const engine = { pId: 'p', puId: 1, stId: 1, evId: 1, ts: 1 };
  test.each<[string, string, (n: number) => unknown]>([
    ['measurements', 'measurements', (n) => ({ sId: '0x1', val: n })],
    ['invalid measurements', 'measurements', () => 1],
    ['reported events', 'events', () => ({ cause: { engine, senses: [] } })],
    ['invalid events', 'events', () => 1],
  ])('%s count one by one', async (_what, topic, itemOf) => {
    const clock = manualClock();
    await start({ now: clock.now, limits: { maxPacketBytes: 262_144 } });
    const raw = await enter(world);
    const list = Array.from({ length: 900 }, (_, n) => itemOf(n));
    const send = (messageId: number) =>
      raw.send(publishPacket(`${up}/${topic}`, list, { qos: 1, messageId }));
    send(1);
    await raw.expect('puback', 1);
    send(2);
    await raw.expect('puback', 2);
    send(3);
    await moments(world);
    expect(raw.of('puback')).toHaveLength(2);
    clock.monotonicMs += 900;
    await raw.expect('puback', 3);
  });

  test('packets that are not messages have a rate too', async () => {
    const clock = manualClock();
    await start({ now: clock.now, limits: slow, tuning: { maxUnackedMessages: 10 } });
    const raw = await enter(world);
    raw.send(...Array.from({ length: 100 }, () => ({ cmd: 'pingreq' as const })));
    await raw.expect('pingresp', 20);
    await moments(world);
    expect(raw.of('pingresp').length).toBeLessThanOrEqual(30);
    await until(() => {
      clock.monotonicMs += 10;
      return raw.of('pingresp').length === 100;
    });
  });

  test('new connections are let in at a bounded rate, in order', async () => {
    const clock = manualClock();
    await start({ now: clock.now, limits: { connectsPerSecond: 50 } });
    const raws = [];
    for (let n = 0; n < 8; n++) {
      const raw = await dial(world);
      raw.send(
        connectPacket(world, { clientId: '', username: world.store.addDevice(n + 10).uuid }),
      );
      raws.push(raw);
    }
    await until(() => world.connector.snapshot().waiting === 3);
    expect(raws.filter((raw) => raw.of('connack').length > 0).length).toBeLessThanOrEqual(5);
    clock.monotonicMs += 40;
    await until(() => world.connector.snapshot().waiting === 1);
    clock.monotonicMs += 1_000;
    for (const raw of raws) await raw.expect('connack');
  });
});
