import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createBudget } from '../../src/assembly/budget.ts';
import { createEdges, createReleases } from '../../src/assembly/releases.ts';

const never = () => new Promise<void>(() => {});

it('gives everything back, last in first out, however many steps hang', async () => {
  const releases = createReleases();
  const order: string[] = [];
  releases.add((withinMs) => void order.push(withinMs > 0 ? 'database' : 'too late'));
  releases.add(never);
  releases.add(() => void order.push('pool'));
  releases.add(never);
  releases.add(() => Promise.reject(new Error('first')));
  await expect(releases.releaseAll(createBudget(3_000))).rejects.toThrow('first');
  expect(order).toEqual(['pool', 'database']);
});

it('closes all edges together, and leaves the one behind that takes too long', async () => {
  const edges = createEdges();
  const told: number[] = [];
  edges.add(never);
  edges.add(async (withinMs) => {
    told.push(withinMs);
    await sleep(withinMs);
    told.push(0);
  });
  const budget = createBudget(3_000);
  await expect(edges.close(budget)).rejects.toThrow('took longer');
  expect(told).toEqual([expect.any(Number), 0]);
  expect(told[0]).toBeLessThan(3_000);
  expect(budget.share(1)).toBeLessThan(3_000);
});
