import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { hasRedis } from '../support/redis.ts';
import { isLong } from '../support/share.ts';
import type { Fault } from './fault.ts';
import { faults } from './faults.ts';
import { diskFull, mountSmallDisk } from './kinds/disk-full.ts';
import { failover } from './kinds/failover.ts';
import { clockBack, clockLeap } from './kinds/time.ts';
import { runFault } from './run-fault.ts';
import { faultsOf, noFaults } from './verdict.ts';
import { startWorld } from './world.ts';
import type { World } from './world.ts';

/** Each takes seconds in `npm test`. `npm run test:nightly` has the others, through faults.long.test.ts. */
const quick = ['kill9', 'ack-lost', 'clocks', 'poison'];
const isHere = ({ name }: Fault) => quick.includes(name) !== isLong;

const load = { devices: 200, rate: 1_500, timescaledb: false, watch: true };
// All faults happen to one world, one after the other: each verdict covers the earlier ones too.
describe('nothing acknowledged is lost, whatever happens', () => {
  const shared = faults.filter(
    (fault) => ![diskFull, failover].includes(fault) && !fault.longOnly && isHere(fault),
  );
  let world: World;

  beforeAll(async () => {
    const proxies = { databaseProxy: true, deviceProxy: true };
    world = await startWorld({ ...load, redis: hasRedis, ...proxies });
  });
  afterAll(() => world.close());
  // A failed attempt may have left the service down, and then no later one would succeed.
  beforeEach(async () => {
    if (world.service.isRunning()) return;
    await world.service.start();
    await world.load.stop(60_000);
  });

  for (const fault of shared) {
    const runs = hasRedis || !fault.world?.redis;
    it.skipIf(!runs)(`${fault.name}: ${fault.promise}`, async () => {
      const { verdict, observations } = await runFault(world, fault, fault.short);
      expect(faultsOf(verdict)).toEqual(noFaults);
      expect(verdict.overHttp).toBeGreaterThan(0);
      expect(verdict.acknowledged).toBeGreaterThan(verdict.overHttp);
      expect(verdict.alarms).toBeGreaterThan(0);
      expect(verdict.handOvers).toBeGreaterThan(0);
      expect(verdict.commands).toBeGreaterThan(0);
      expect(observations['grown MB'] ?? 0).toBeLessThan(100);
    });
  }
});

for (const fault of [diskFull].filter(isHere))
  it.skipIf(fault.lacks?.() !== null)(
    `${fault.name}: ${fault.promise}`,
    { timeout: 180_000 },
    async () => {
      const disk = mountSmallDisk();
      try {
        const world = await startWorld({ ...load, databaseDir: disk.databaseDir });
        try {
          const { verdict } = await runFault(world, fault, fault.short);
          expect(faultsOf(verdict)).toEqual(noFaults);
        } finally {
          await world.close();
        }
      } finally {
        disk.unmount();
      }
    },
  );

// A world each: the first two set its clock, and the last one loses its primary.
for (const fault of [clockBack, clockLeap, failover].filter(isHere))
  it(`${fault.name}: ${fault.promise}`, { timeout: 180_000 }, async () => {
    const world = await startWorld({ ...load, devices: 60, rate: 500, ...fault.world });
    try {
      const { verdict } = await runFault(world, fault, fault.short);
      expect(faultsOf(verdict)).toEqual(noFaults);
      expect(verdict.acknowledged).toBeGreaterThan(0);
      expect(verdict.overHttp).toBeGreaterThan(0);
    } finally {
      await world.close();
    }
  });
