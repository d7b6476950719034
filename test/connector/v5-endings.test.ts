// Why the service ends a connection of MQTT 5.
import { afterEach, describe, expect, test } from 'vitest';
import { manualClock, startWorld, until, type World, type WorldOptions } from './harness.ts';
import { enter, goodbye, publishPacket, type Connect, type RawClient } from './raw.ts';

let world: World;
let up: string;
const start = async (options?: WorldOptions) => {
  world = await startWorld(options);
  up = `devices/${world.device.uuid}/up`;
};
afterEach(() => world.close());

const enter5 = (more: Partial<Connect> = {}): Promise<RawClient> =>
  enter(world, { protocolVersion: 5, ...more });

describe('a connection that the service ends gets the reason', () => {
  test('its keep-alive', async () => {
    const clock = manualClock();
    await start({ now: clock.now });
    const raw = await enter5({ keepalive: 10 });
    await until(() => world.counted.includes('connected'));
    clock.monotonicMs += 15_100;
    expect(await goodbye(raw)).toBe(0x8d);
  });

  test('its session was taken over', async () => {
    await start();
    const raw = await enter5();
    await enter5();
    expect(await goodbye(raw)).toBe(0x8e);
  });

  test('the device has more connections than it may', async () => {
    await start();
    const raw = await enter5({ clientId: '0' });
    for (const clientId of ['1', '2', '3', '4']) await enter5({ clientId });
    expect(await goodbye(raw)).toBe(0x97);
  });

  test('the device was removed', async () => {
    await start();
    const raw = await enter5();
    world.store.removeDevice(world.device.uuid);
    expect(await goodbye(raw)).toBe(0x87);
  });

  test('a message could not be stored, and is not acknowledged', async () => {
    await start();
    world.store.isHolding = true;
    const raw = await enter5();
    raw.send(publishPacket(`${up}/state`, '{}', { qos: 1, messageId: 1 }));
    await until(() => world.store.held.length === 1);
    world.store.held[0]?.fail(new Error('no'));
    expect(await goodbye(raw)).toBe(0x89);
    expect(raw.of('puback')).toEqual([]);
  });

  test('the service stops, even with a message that is not stored', async () => {
    await start();
    world.store.isHolding = true;
    const [idle, busy] = [await enter5({ clientId: 'idle' }), await enter5({ clientId: 'busy' })];
    busy.send(publishPacket(`${up}/state`, '{}', { qos: 1, messageId: 1 }));
    await until(() => world.store.held.length === 1);
    await world.connector.close({ drainMs: 10 });
    expect([await goodbye(idle), await goodbye(busy)]).toEqual([0x8b, 0x8b]);
    expect(busy.of('puback')).toEqual([]);
  });
});
