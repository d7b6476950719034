import { describe, it } from 'vitest';
import { expectHeld } from './hold.ts';
import { getKind } from './kinds.ts';
import { shortKinds } from './short-kinds.ts';

const run = { seconds: 10, devices: 100, rate: 300, timescaledb: false };
// CI machines are busy with others. The oracle holds the figures themselves.
const leniency = { time: 10, memory: 1 };

describe('a noisy neighbour, for ten seconds', () => {
  for (const name of shortKinds) {
    it(`${name}: ${getKind(name).says}`, { timeout: 180_000, retry: 1 }, () =>
      expectHeld(name, run, leniency),
    );
  }
});
