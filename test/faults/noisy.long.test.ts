import { describe, it } from 'vitest';
import { findTimescaleBinDir } from '../harness/cluster.ts';
import { expectHeld } from './noisy/hold.ts';
import { kinds } from './noisy/kinds.ts';
import { shortKinds } from './noisy/short-kinds.ts';

/** `TEST_LONG=full`: as long as the oracle does it, which takes an hour; else as long as CI has time for. */
const isFull = process.env['TEST_LONG'] === 'full';
const run = isFull
  ? { seconds: 30, devices: 200, rate: 500, timescaledb: findTimescaleBinDir() !== null }
  : { seconds: 5, devices: 100, rate: 300, timescaledb: false };
// CI machines are busy with others. The oracle holds the figures themselves.
const leniency = { time: isFull ? 2 : 10, memory: 1 };

describe('a noisy neighbour, of every other kind', () => {
  for (const { name, says } of kinds) {
    if (shortKinds.includes(name)) continue;
    it(`${name}: ${says}`, { timeout: 600_000 }, () => expectHeld(name, run, leniency));
  }
});
