import { afterEach, expect, test } from 'vitest';
import { startWorld, until, type World, type WorldOptions } from './harness.ts';
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

test('messages of one read are handed over in order, whatever their QoS', async () => {
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
