import { afterEach, test } from 'vitest';
import { startWorld, until, type World, type WorldOptions } from './harness.ts';
import { enter } from './raw.ts';

let world: World;
const start = async (options?: WorldOptions) => (world = await startWorld(options));
afterEach(() => world.close());

test('a silent client is closed after one and a half times its keep-alive', async () => {
  let monotonicMs = 0;
  await start({ now: () => monotonicMs });
  const raw = await enter(world, { keepalive: 10 });
  monotonicMs += 14_000;
  raw.send({ cmd: 'pingreq' });
  await raw.expect('pingresp');
  monotonicMs += 15_100;
  await raw.ended();
  await until(() => world.counted.includes('disconnected keepalive'));
});

test.each([0, 65_535])('%i is limited to the maximum', async (keepalive) => {
  let monotonicMs = 0;
  await start({ now: () => monotonicMs, limits: { maxKeepaliveSeconds: 100 } });
  const raw = await enter(world, { keepalive });
  monotonicMs += 149_000;
  raw.send({ cmd: 'pingreq' });
  await raw.expect('pingresp');
  monotonicMs += 151_000;
  await raw.ended();
});
