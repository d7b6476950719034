import { afterEach, expect, test } from 'vitest';
import { startWorld, type World } from './harness.ts';
import { enter, publishPacket, type RawClient } from './raw.ts';

type Sender = { raw: RawClient; topic: string };

let world: World;
afterEach(() => world.close());

const each = 100;

test('what arrives at once is read over several turns of the event loop, with accounts in turn', async () => {
  let turn = 0;
  const readFairly: number[] = [];
  world = await startWorld();
  const { store } = world;
  const enterAs = async (number: number, accountId: number): Promise<Sender> => {
    const { uuid, token } = store.addDevice(number, accountId);
    const raw = await enter(world, { username: uuid, password: Buffer.from(token), clientId: '' });
    return { raw, topic: `devices/${uuid}/up/measurements` };
  };
  const many: Sender[] = [];
  for (let n = 0; n < 40; n += 1) many.push(await enterAs(100 + n, 2));
  const one = await enterAs(200, 3);
  const { push } = store.stored;
  store.stored.push = (...stored) => {
    readFairly[turn] = (readFairly[turn] ?? 0) + stored.length;
    return push.apply(store.stored, stored);
  };
  const count = () => {
    turn += 1;
    counting = setImmediate(count);
  };
  let counting = setImmediate(count);

  const measurement = '{"sId":"0x1","val":1}';
  for (const { raw, topic } of many)
    raw.send(...Array.from({ length: each }, () => publishPacket(topic, measurement)));
  one.raw.send(publishPacket(one.topic, measurement));
  await expect.poll(() => store.stored.length).toBe(many.length * each + 1);
  clearImmediate(counting);
  // A read that has begun is not cut.
  expect(Math.max(...readFairly.filter(Boolean))).toBeLessThan(256 + each);
  const place = store.stored.findIndex(({ device }) => device.deviceId === 200);
  expect(place).toBeLessThan((many.length * each) / 4);
});
