import fc from 'fast-check';
import { expect, test } from 'vitest';
import { coalesce } from '../../src/lib/coalesce.ts';

/** A store whose queries the test answers itself, in any order. */
function heldStore() {
  const queries: { keys: number[]; answer: () => void; fail: () => void }[] = [];
  const load = (keys: number[]) =>
    new Promise<Map<number, string>>((resolve, reject) => {
      queries.push({
        keys,
        answer: () => resolve(new Map(keys.filter((k) => k > 0).map((k) => [k, `value ${k}`]))),
        fail: () => reject(new Error('away')),
      });
    });
  return { queries, load };
}

test('look-ups from one turn share a query; later ones wait for the next', async () => {
  const { queries, load } = heldStore();
  const { find } = coalesce({ load });
  const first = Promise.all([find(1), find(2), find(1), find(-3)]);
  await expect.poll(() => queries.length).toBe(1);
  const second = Promise.all([find(1), find(4)]);
  expect(queries.map(({ keys }) => keys)).toEqual([[1, 2, -3]]);
  queries[0]?.answer();
  expect(await first).toEqual(['value 1', 'value 2', 'value 1', null]);
  await expect.poll(() => queries.length).toBe(2);
  expect(queries[1]?.keys).toEqual([1, 4]);
  queries[1]?.answer();
  expect(await second).toEqual(['value 1', 'value 4']);
});

test('a query that fails rejects those that shared it, and nobody else', async () => {
  const { queries, load } = heldStore();
  const { find } = coalesce({ load });
  const failed = find(1).catch((error: unknown) => error);
  await expect.poll(() => queries.length).toBe(1);
  const next = find(1);
  queries[0]?.fail();
  expect(await failed).toEqual(new Error('away'));
  await expect.poll(() => queries.length).toBe(2);
  queries[1]?.answer();
  expect(await next).toBe('value 1');
});

test('every key gets its own value, in queries of limited size and number', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: -5, max: 60 }), { maxLength: 200 }),
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 1, max: 3 }),
      async (keys, maxKeys, parallel) => {
        let running = 0;
        const load = async (asked: number[]) => {
          running += 1;
          expect(asked.length).toBeLessThanOrEqual(maxKeys);
          expect(running).toBeLessThanOrEqual(parallel);
          await Promise.resolve();
          running -= 1;
          return new Map(asked.filter((k) => k > 0).map((k) => [k, k * 2]));
        };
        const { find } = coalesce({ load, maxKeys, parallel });
        const values = await Promise.all(keys.map(find));
        expect(values).toEqual(keys.map((k) => (k > 0 ? k * 2 : null)));
      },
    ),
    { numRuns: 50 },
  );
});
