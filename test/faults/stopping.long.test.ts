import { afterAll, beforeAll, expect, it } from 'vitest';
import { databaseNetwork } from './kinds/database.ts';
import { faultsOf, judge } from './verdict.ts';
import { startWorld } from './world.ts';
import type { World } from './world.ts';

const options = { devices: 20, rate: 200, timescaledb: false };
let world: World;
beforeAll(async () => {
  world = await startWorld({ ...options, redis: true, databaseProxy: true });
});
afterAll(() => world.close());

async function runFor(acknowledgements: number): Promise<void> {
  const goal = world.load.counts().acknowledged + acknowledgements;
  while (world.load.counts().acknowledged < goal) await world.load.nextAck();
}

it('with a database that hangs the service stops in time, and nothing is lost', async () => {
  const { load, service } = world;
  load.start();
  await runFor(200);
  databaseNetwork(world).stall();
  const sinceMs = performance.now();
  expect(await service.terminate()).toBe(1);
  // The default of STOP_TIMEOUT_MS, plus some time for a busy machine.
  expect(performance.now() - sinceMs).toBeLessThan(9_000 + 5_000);
  databaseNetwork(world).heal();
  await service.start();
  await runFor(200);
  expect(await load.stop(60_000)).toBe(true);
  const faults = faultsOf(await judge(world));
  expect(Object.entries(faults).filter(([, count]) => count > 0)).toEqual([]);
});
