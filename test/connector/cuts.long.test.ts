import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hasOpenssl } from '../support/certificate.ts';
import { run, startCuts } from './cuts.ts';

describe.skipIf(!hasOpenssl)('a stream of packets, cut anywhere into any number of reads', () => {
  test('results in the same as in one piece, 2,000 times', { timeout: 600_000 }, async () => {
    const cuts = await startCuts();
    await fc.assert(
      fc.asyncProperty(run, async (one) => {
        const { result, expected } = await cuts.play(one);
        expect(result).toEqual(expected);
      }),
      { numRuns: 2_000, endOnFailure: true },
    );
    await cuts.close();
  });
});
