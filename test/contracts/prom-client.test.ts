import fc from 'fast-check';
import { Histogram, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { DurationHistogram } from '../../src/metrics/duration-histogram.ts';

test("gives the same figures as the library's histogram", async () => {
  const options = { name: 'waited_seconds', help: 'A wait.', buckets: [0.002, 0.1, 1, 10] };
  const seconds = fc.oneof(
    fc.double({ min: 0, max: 20, noNaN: true }),
    fc.constantFrom(...options.buckets),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(seconds), async (observed) => {
      const [ours, theirs] = [new Registry(), new Registry()];
      const quick = new DurationHistogram({ ...options, registers: [ours] });
      const known = new Histogram({ ...options, registers: [theirs] });
      for (const each of observed) {
        quick.observe(each);
        known.observe(each);
      }
      expect(await ours.metrics()).toBe(await theirs.metrics());
      quick.reset();
      known.reset();
      known.zero({});
      expect(await ours.metrics()).toBe(await theirs.metrics());
    }),
  );
});
