import { afterEach, describe, expect, test } from 'vitest';
import { DomainError } from '../../src/errors.ts';
import { manualClock, startWorld, until, type World, type WorldOptions } from './harness.ts';
import { enter, moments, publishPacket, type RawClient } from './raw.ts';

let world: World;
let topic: string;
const start = async (options?: WorldOptions) => {
  world = await startWorld(options);
  topic = `devices/${world.device.uuid}/up/measurements`;
  return world.store;
};
afterEach(() => world.close());

const measurement = (val: number) => ({ sId: '0x1', val });
const publish = (raw: RawClient, qos: 0 | 1 | 2, messageId: number, dup = false) =>
  raw.send(publishPacket(topic, measurement(messageId), { qos, messageId, dup }));

const valuesOf = (list: { uplink: { content: unknown } }[]) =>
  list.map(
    ({ uplink }) => (uplink.content as { items: { value: { val: number } }[] }).items[0]?.value.val,
  );

describe('an acknowledgement means stored', () => {
  test.each([
    [1, 'puback'],
    [2, 'pubrec'],
  ] as const)('QoS %i: no %s before the commit', async (qos, cmd) => {
    const store = await start();
    store.isHolding = true;
    const raw = await enter(world);
    publish(raw, qos, 1);
    await until(() => store.held.length === 1);
    await moments(world);
    expect(raw.of(cmd)).toEqual([]);
    store.release();
    expect((await raw.expect(cmd))[0]?.messageId).toBe(1);
  });

  test('messages of one read are handed over in their order, whatever their QoS', async () => {
    const store = await start();
    store.isHolding = true;
    const raw = await enter(world);
    const packets = Array.from({ length: 60 }, (_, n) =>
      publishPacket(topic, measurement(n), { qos: (n % 3) as 0 | 1 | 2, messageId: n + 1 }),
    );
    raw.send(...packets);
    await until(() => store.held.length === 60);
    expect(valuesOf(store.held)).toEqual(packets.map((_, n) => n));
  });

  test('commits in any order are acknowledged first in, first out [MQTT-4.6.0-2]', async () => {
    const store = await start();
    store.isHolding = true;
    const raw = await enter(world);
    for (let n = 1; n <= 10; n++) publish(raw, 1, n);
    await until(() => store.held.length === 10);
    for (const { commit } of store.held.slice(1).toReversed()) commit();
    await moments(world);
    expect(raw.of('puback')).toEqual([]);
    store.held[0]?.commit();
    const acks = await raw.expect('puback', 10);
    expect(acks.map(({ messageId }) => messageId)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  test('a QoS 2 message sent again before its PUBREL is stored once', async () => {
    const store = await start();
    store.isHolding = true;
    const raw = await enter(world);
    publish(raw, 2, 7);
    publish(raw, 2, 7, true);
    await until(() => store.held.length === 1);
    store.release();
    await raw.expect('pubrec', 2);
    publish(raw, 2, 7, true);
    await raw.expect('pubrec', 3);
    raw.send({ cmd: 'pubrel', messageId: 7 });
    await raw.expect('pubcomp');
    expect(store.stored).toHaveLength(1);
    publish(raw, 2, 7);
    await raw.expect('pubrec', 4);
    expect(store.stored).toHaveLength(2);
  });

  test('a QoS 1 message sent again after a reconnect is handed over again', async () => {
    const store = await start();
    store.isHolding = true;
    const first = await enter(world);
    publish(first, 1, 7);
    await until(() => store.held.length === 1);
    first.socket.destroy();
    await until(() => store.withdrawals === 1);
    expect(store.held).toEqual([]);
    const second = await enter(world);
    publish(second, 1, 7, true);
    await until(() => store.held.length === 1);
    store.release();
    await second.expect('puback');
    expect(store.stored).toHaveLength(1);
  });
});

describe('what cannot be stored', () => {
  test.each([
    ['unavailable', new DomainError('unavailable', 'away')],
    ['device-gone', new DomainError('device-gone', 'gone')],
    ['anything else', new TypeError('bug')],
  ])('%s: no acknowledgement, and the connection is closed', async (what, error) => {
    const store = await start();
    store.isHolding = true;
    const raw = await enter(world);
    publish(raw, 1, 1);
    publish(raw, 1, 2);
    await until(() => store.held.length === 2);
    const [first, second] = store.held;
    second?.commit();
    first?.fail(error);
    await raw.ended();
    expect(raw.of('puback')).toEqual([]);
    expect(world.logged).toEqual(what === 'anything else' ? ['message.not-stored'] : []);
    expect(world.connector.snapshot().unackedBytes).toBe(0);
  });

  test('a store that does not answer in time: closed, and withdrawn', async () => {
    const clock = manualClock();
    const store = await start({ now: clock.now });
    store.isHolding = true;
    const raw = await enter(world);
    publish(raw, 1, 1);
    publish(raw, 0, 2);
    await until(() => store.held.length === 2);
    clock.monotonicMs += 9_000;
    await clock.looks(4);
    expect(raw.isClosed).toBe(false);
    clock.monotonicMs += 1_100;
    await raw.ended();
    await until(() => store.withdrawals === 2);
    await until(() => world.connector.snapshot().unackedBytes === 0);
    expect(world.counted).toContain('disconnected not-stored');
  });

  test('QoS 0 messages of a client that has left are stored all the same', async () => {
    const store = await start();
    store.isHolding = true;
    const raw = await enter(world);
    publish(raw, 0, 1);
    raw.send({ cmd: 'disconnect' });
    await until(() => store.presence.length === 2);
    expect(store.held).toHaveLength(1);
    expect(store.withdrawals).toBe(0);
    store.release();
    await until(() => world.connector.snapshot().unackedBytes === 0);
    expect(store.stored).toHaveLength(1);
  });

  test('... and are given up when the store does not come back', async () => {
    const clock = manualClock();
    const store = await start({ now: clock.now });
    store.isHolding = true;
    const raw = await enter(world);
    publish(raw, 0, 1);
    raw.send({ cmd: 'disconnect' });
    await until(() => store.presence.length === 2);
    clock.monotonicMs += 11_000;
    await until(() => store.withdrawals === 1);
    expect(world.connector.snapshot().unackedBytes).toBe(0);
  });
});
