import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasOpenssl } from '../support/certificate.ts';
import { run, startCuts, ways, type Run } from './cuts.ts';

describe.skipIf(!hasOpenssl)('a stream of packets, cut anywhere into any number of reads', () => {
  let cuts: Awaited<ReturnType<typeof startCuts>>;
  beforeAll(async () => void (cuts = await startCuts()));
  afterAll(() => cuts.close());

  const plain: Run = {
    version: 5,
    way: 'tcp',
    steps: [],
    last: 'nothing',
    cuts: [],
    areApart: true,
    waits: false,
  };
  const publish = { kind: 'publish', qos: 1, topic: 'measurements', size: 0 } as const;

  test.each(ways.flatMap((way) => ([4, 5] as const).map((version) => [way, version] as const)))(
    'over %s, MQTT %i: the packet after a CONNECT in two pieces is served',
    async (way, version) => {
      const steps = [{ kind: 'subscribe' } as const, publish, { kind: 'ping' } as const];
      for (const at of [0.05, 0.2, 0.4]) {
        const { result, expected } = await cuts.play({ ...plain, way, version, steps, cuts: [at] });
        expect(result).toEqual(expected);
      }
    },
  );

  test.each([4, 5] as const)(
    'after any byte, also inside a length of two bytes: MQTT %i',
    async (version) => {
      const steps = [
        publish,
        { ...publish, size: 200 },
        { ...publish, qos: 2, size: 200 } as const,
      ];
      for (let n = 50; n <= 100; n += 1) {
        const one: Run = { ...plain, version, steps, cuts: [n / 100], waits: true };
        const { result, expected } = await cuts.play(one);
        expect(result).toEqual(expected);
      }
    },
  );

  test('results in the same as in one piece', async () => {
    await fc.assert(
      fc.asyncProperty(run, async (one) => {
        const { result, expected } = await cuts.play(one);
        expect(result).toEqual(expected);
      }),
      { numRuns: 120, endOnFailure: true },
    );
  });
});
