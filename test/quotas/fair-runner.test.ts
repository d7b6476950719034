import { expect, it } from 'vitest';
import { createFairRunner } from '../../src/quotas/quotas.ts';

it("a limited number of an account's tasks run at once, in order; other accounts' tasks run beside them", async () => {
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
  // Once nobody waits, everything starts anew.
  expect(await runFairly(1, async () => 'e')).toBe('e');
});
