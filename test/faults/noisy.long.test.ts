import { describe, it } from 'vitest';
import { findTimescaleBinDir } from '../harness/cluster.ts';
import { expectHeld } from './noisy/hold.ts';
import { kinds } from './noisy/kinds.ts';
import { shortKinds } from './noisy/short-kinds.ts';

const run = {
  seconds: 30,
  devices: 200,
  rate: 500,
  timescaledb: findTimescaleBinDir() !== null,
};
// CI machines are busy with others. The oracle holds the figures themselves.
const leniency = { time: 2, memory: 1 };

describe('a noisy neighbour, for thirty seconds', () => {
  for (const { name, says } of kinds) {
    if (shortKinds.includes(name)) continue;
    it(`${name}: ${says}`, { timeout: 600_000 }, () => expectHeld(name, run, leniency));
  }
});
