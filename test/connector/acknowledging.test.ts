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

  test('a store that does not answer in time: the connection is closed, the message withdrawn', async () => {
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

  test('QoS 0 messages of a client that has left are still stored', async () => {
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

  test('… and are given up if the store does not return', async () => {
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
