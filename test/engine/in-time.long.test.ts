import fc from 'fast-check';
import { test } from 'vitest';
import { happeningsUpTo, listening, purposesInTime } from './arbitraries-in-time.ts';
import { compareEngines } from './compare-engines.ts';

/** The number of random pairs of purposes and streams; ENGINE_PAIRS sets it. */
const numRuns = Number(process.env['ENGINE_PAIRS'] ?? 8_000);

test(`members of time: ${numRuns} pairs of purposes and streams`, { timeout: 3_600_000 }, () => {
  fc.assert(fc.property(purposesInTime, happeningsUpTo(50), listening, compareEngines), {
    numRuns,
  });
});
