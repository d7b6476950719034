import { expect, test } from 'vitest';
import { createRunFairly } from '../../src/accounts/passwords.ts';

/** Work that runs until it is told to end, in the order in which it began. */
function openQueue(options: Parameters<typeof createRunFairly>[0]) {
  const queue = createRunFairly(options);
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const outcomes: Promise<string>[] = [];
  return {
    begun,
    outcomes,
    add(name: string, who = '') {
      const work = () => {
        begun.push(name);
        return new Promise<string>((resolve) => ends.push(() => resolve(name)));
      };
      const outcome = queue({ address: name[0] ?? '', who }, work);
      outcomes.push(outcome.catch((error: Error & { code?: string }) => String(error.code)));
    },
    /** Ends the oldest work first, until nothing is left. */
    async finish() {
      for (;;) {
        await new Promise((resolve) => setImmediate(resolve));
        const end = ends.shift();
        if (!end) return Promise.all(outcomes);
        end();
      }
    },
  };
}

test('addresses are served in rotation, however much each has waiting', async () => {
  const queue = openQueue({ parallel: 1, perAddress: 1, maxWaiting: 100 });
  for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1']) queue.add(name);
  expect(await queue.finish()).toEqual(['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1']);
  expect(queue.begun).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']);
});

test('and so are the accounts of an address', async () => {
  const queue = openQueue({ parallel: 1, perAddress: 1, maxWaiting: 100 });
  for (const name of ['a1', 'a2', 'a3']) queue.add(name, 'busy');
  for (const name of ['a4', 'a5']) queue.add(name, 'other');
  await queue.finish();
  expect(queue.begun).toEqual(['a1', 'a2', 'a4', 'a3', 'a5']);
});

test('an address leaves a place to the others', async () => {
  const queue = openQueue({ parallel: 3, perAddress: 2, maxWaiting: 100 });
  for (const name of ['a1', 'a2', 'a3', 'a4']) queue.add(name);
  await new Promise((resolve) => setImmediate(resolve));
  expect(queue.begun).toEqual(['a1', 'a2']);
  queue.add('b1');
  await queue.finish();
  expect(queue.begun).toEqual(['a1', 'a2', 'b1', 'a3', 'a4']);
});

test('when the queue is full, whoever has most waiting loses its newest', async () => {
  const queue = openQueue({ parallel: 1, perAddress: 1, maxWaiting: 4 });
  for (const name of ['a1', 'a2', 'a3']) queue.add(name, 'x');
  for (const name of ['a4', 'a5', 'a6']) queue.add(name, 'y');
  queue.add('b1');
  queue.add('b2');
  expect(await queue.finish()).toEqual([
    'a1',
    'a2',
    'unavailable',
    'a4',
    'unavailable',
    'unavailable',
    'b1',
    'b2',
  ]);
  // Work that fails frees its place too.
  const failing = createRunFairly({ parallel: 1, perAddress: 1, maxWaiting: 1 });
  const turn = { address: 'a', who: '' };
  await expect(failing(turn, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  expect(await failing(turn, async () => 'done')).toBe('done');
});
