import { expect, it } from 'vitest';
import { createFairRunner } from '../../src/quotas/quotas.ts';

it('runs so many of one account at once, in order; those of others run beside them', async () => {
  const runFairly = createFairRunner(2);
  const begun: string[] = [];
  const gates = new Map<string, PromiseWithResolvers<string>>();
  const begin = (accountId: number, name: string) => {
    const gate = Promise.withResolvers<string>();
    gates.set(name, gate);
    return runFairly(accountId, () => {
      begun.push(name);
      return gate.promise;
    });
  };
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => begin(1, name));
  const other = begin(2, 'other');
  await turn();
  expect(begun).toEqual(['a', 'b', 'other']);
  gates.get('b')?.reject(new Error('no'));
  await expect(b).rejects.toThrow('no');
  await turn();
  expect(begun).toEqual(['a', 'b', 'other', 'c']);
  for (const [name, gate] of gates) gate.resolve(name);
  expect(await Promise.all([a, c, d, other])).toEqual(['a', 'c', 'd', 'other']);
  expect(begun).toEqual(['a', 'b', 'other', 'c', 'd']);
  // When nobody waits, it starts from scratch.
  expect(await runFairly(1, async () => 'e')).toBe('e');
});
