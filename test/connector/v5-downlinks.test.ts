// Messages to devices of MQTT 5.
import { afterEach, describe, expect, test } from 'vitest';
import type { Downlink } from '../../src/contract/uplink.ts';
import { startWorld, until, type World, type WorldOptions } from './harness.ts';
import { enter, type Connect, type RawClient } from './raw.ts';

let world: World;
let down: string;
const start = async (options?: WorldOptions) => {
  world = await startWorld(options);
  down = `devices/${world.device.uuid}/down`;
};
afterEach(() => world.close());

const enter5 = (more: Partial<Connect> = {}): Promise<RawClient> =>
  enter(world, { protocolVersion: 5, ...more });

describe('a message to a device', () => {
  const subscribe = async (raw: RawClient, qos: 0 | 1 | 2 = 1) => {
    raw.send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: `${down}/#`, qos }] });
    await raw.expect('suback');
  };
  const push = (message: Downlink) =>
    world.store.bus.publish('down', { uuid: world.device.uuid, message });
  const profile: Downlink = { topic: 'profile', payload: { pId: 'p', purposes: [] }, pId: 'p' };
  const large: Downlink = { ...profile, payload: { text: 'x'.repeat(1_000) } };

  test.each([0, 1, 2] as const)(
    'arrives at QoS %i, and counts as delivered when it is acknowledged',
    async (qos) => {
      await start();
      const raw = await enter5();
      await subscribe(raw, qos);
      push(profile);
      const [sent] = await raw.expect('publish');
      expect(sent).toMatchObject({
        topic: `${down}/profile`,
        qos: Math.min(qos, 1),
        retain: false,
      });
      expect(JSON.parse(sent?.payload.toString() ?? '')).toEqual(profile.payload);
      if (qos > 0) {
        expect(world.store.delivered).toEqual([]);
        raw.send({ cmd: 'puback', messageId: sent?.messageId ?? 0, reasonCode: 0x80 });
      }
      await until(() => world.store.delivered.length === 1);
      push(profile);
      expect((await raw.expect('publish', 2))[1]?.messageId).toBe(qos > 0 ? 2 : undefined);
    },
  );

  test('is never larger than it accepts: a profile stays pending, with a rejection', async () => {
    await start();
    const raw = await enter5({ properties: { maximumPacketSize: 500 } });
    await subscribe(raw);
    push(large);
    push({ ...profile, topic: 'configuration', pId: undefined });
    const [sent] = await raw.expect('publish');
    expect(sent?.topic).toBe(`${down}/configuration`);
    expect(world.store.delivered).toEqual([]);
    await until(() => world.store.stored.length === 1);
    expect(world.store.stored[0]?.uplink).toMatchObject({
      topic: `${down}/profile`,
      rejections: [{ reason: 'packet-too-large', message: expect.stringContaining('500') }],
    });
  });

  test('a text for its display says how long it is useful, and is not sent later', async () => {
    let ms = 1_767_225_600_000;
    await start({ ports: { clock: () => ms } });
    const raw = await enter5();
    await subscribe(raw);
    const { pId: _, ...text } = { ...profile, topic: 'display' as const };
    push({ ...text, payload: { text: 'a', ts: ms - 1_000 } });
    const [sent] = await raw.expect('publish');
    expect(sent?.properties).toEqual({ messageExpiryInterval: 86_399 });
    // It waits for the acknowledgement of the one before.
    push({ ...text, payload: { text: 'b', ts: ms } });
    push({ ...text, payload: { text: 'c', ts: ms + 1 } });
    ms += 86_400_000;
    raw.send({ cmd: 'puback', messageId: sent?.messageId ?? 0 });
    const [, next] = await raw.expect('publish', 2);
    expect(JSON.parse(next?.payload.toString() ?? '')).toMatchObject({ text: 'c' });
    expect(next?.properties).toEqual({ messageExpiryInterval: 1 });
  });

  test('waits for a client that does not read, and ends with it', async () => {
    await start({ tuning: { drainTimeoutMs: 200 } });
    const raw = await enter5();
    await subscribe(raw, 0);
    raw.socket.pause();
    await until(() => {
      push({ topic: 'display', payload: { text: 'x'.repeat(200_000) } });
      return world.counted.includes('disconnected unread');
    });
  });
});
