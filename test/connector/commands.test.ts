// Commands on their way to a device, as every transport carries them.
import { afterEach, describe, expect, test } from 'vitest';
import type { Downlink } from '../../src/contract/uplink.ts';
import { startWorld, until, type World, type WorldOptions } from './harness.ts';
import { enter } from './raw.ts';

let world: World;
let down: string;
let ms = 1_767_225_600_000;
const start = async (options: WorldOptions = {}) => {
  world = await startWorld({ ...options, ports: { clock: () => ms } });
  down = `devices/${world.device.uuid}/down`;
};
afterEach(() => world.close());

const command = (id: number, expiresTs: number, answerMs = 60_000): Downlink => ({
  topic: 'command',
  payload: { commandId: `c${id}`, name: 'restart', sentTs: ms, expiresTs },
  command: { id, expiresTs, answerMs },
});

const idOf = (payload: Buffer | string | undefined) =>
  (JSON.parse(payload?.toString() ?? '{}') as { commandId?: string }).commandId;

describe.each([4, 5] as const)('over MQTT version %i', (protocolVersion) => {
  const subscribe = async (qos: 0 | 1) => {
    const raw = await enter(world, { protocolVersion });
    raw.send({
      cmd: 'subscribe',
      messageId: 1,
      subscriptions: [{ topic: `${down}/command`, qos }],
    });
    await raw.expect('suback');
    return raw;
  };

  test.each([0, 1] as const)(
    'it is delivered when it is acknowledged, at QoS 0 when it is written: %i',
    async (qos) => {
      await start();
      world.store.onSubscribed = () => [command(1, ms + 90_500)];
      const raw = await subscribe(qos);
      const [sent] = await raw.expect('publish');
      expect(idOf(sent?.payload)).toBe('c1');
      if (protocolVersion === 5) expect(sent?.properties).toEqual({ messageExpiryInterval: 91 });
      if (qos === 1) {
        expect(world.store.delivered).toEqual([]);
        raw.send({ cmd: 'puback', messageId: sent?.messageId ?? 0 });
      }
      await until(() => world.store.delivered.length === 1);
      expect(world.store.delivered[0]?.command?.id).toBe(1);
    },
  );

  test('it does not leave once its time is over, however long it waited', async () => {
    await start();
    world.store.onSubscribed = () => [command(1, ms + 1_000), command(2, ms + 1_000)];
    const raw = await subscribe(1);
    const [first] = await raw.expect('publish');
    ms += 1_000;
    world.store.onDue = (topic) => (topic === 'command' ? [command(3, ms + 5_000)] : []);
    raw.send({ cmd: 'puback', messageId: first?.messageId ?? 0 });
    await until(() => world.store.delivered.length === 1);
    world.store.bus.publish('due', { uuid: world.device.uuid, topic: 'command' });
    const [, next] = await raw.expect('publish', 2);
    expect(idOf(next?.payload)).toBe('c3');
  });

  test('the next one is looked for when the answer is not waited for any more', async () => {
    await start();
    world.store.onSubscribed = () => [command(1, ms + 5_000, 10)];
    let asked = 0;
    world.store.onDue = (topic) => {
      if (topic !== 'command' || (asked += 1) > 1) return [];
      return [command(2, ms + 5_000)];
    };
    const raw = await subscribe(1);
    const [first] = await raw.expect('publish');
    raw.send({ cmd: 'puback', messageId: first?.messageId ?? 0 });
    const [, next] = await raw.expect('publish', 2);
    expect(idOf(next?.payload)).toBe('c2');
  });
});
