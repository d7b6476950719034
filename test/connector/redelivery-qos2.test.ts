import { afterEach, expect, test } from 'vitest';
import { startWorld, until, type World, type WorldOptions } from './harness.ts';
import { enter, publishPacket, type RawClient } from './raw.ts';

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
