import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createBudget, createIngress, createDisposables } from '../../src/assembly/lifecycle.ts';
import type { Write } from '../../src/log/logger.ts';

const never = () => new Promise<void>(() => {});

const told: object[] = [];
const write: Write = ({ event, step }) => void told.push({ event, step });
const log = { info: write, warn: write, error: write };
beforeEach(() => {
  told.length = 0;
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => void vi.useRealTimers());

/** The result of what takes as long as its timers say. */
async function inTurn<T>(work: Promise<T>): Promise<T> {
  await vi.runAllTimersAsync();
  return work;
}

it('releases everything in reverse order, however many steps hang', async () => {
  const disposables = createDisposables(log);
  const order: string[] = [];
  disposables.add(
    'database',
    (withinMs) => void order.push(withinMs > 0 ? 'database' : 'too late'),
  );
  disposables.add('slow', never);
  disposables.add('pool', () => void order.push('pool'));
  disposables.add('slower', never);
  disposables.add('broken', () => Promise.reject(new Error('first')));
  const unfinished = await inTurn(disposables.disposeAll(createBudget(3_000)));
  expect(unfinished).toEqual(['broken', 'slower', 'slow']);
  expect(order).toEqual(['pool', 'database']);
  expect(told).toEqual([
    { event: 'stop.step-failed', step: 'broken' },
    { event: 'stop.step-cut', step: 'slower' },
    { event: 'stop.step-cut', step: 'slow' },
  ]);
});

it('five releases that hang leave more than a tenth of the time to the last one', async () => {
  const disposables = createDisposables(log);
  let leftMs = 0;
  disposables.add('last', (withinMs) => void (leftMs = withinMs));
  for (let n = 0; n < 5; n += 1) disposables.add(`hangs ${n}`, never);
  expect(await inTurn(disposables.disposeAll(createBudget(4_000)))).toHaveLength(5);
  expect(leftMs).toBeGreaterThan(4_000 / 10);
  expect(leftMs).toBeLessThan(4_000 * (2 / 3) ** 5);
});

it('closes all listeners together, and abandons one that takes too long', async () => {
  const edges = createIngress(log);
  const given: number[] = [];
  edges.add('MQTT', never);
  edges.add('HTTP', async (withinMs) => {
    given.push(withinMs);
    await new Promise((resolve) => setTimeout(resolve, withinMs));
    given.push(0);
  });
  const budget = createBudget(3_000);
  expect(await inTurn(edges.close(budget))).toEqual(['MQTT']);
  expect(given).toEqual([expect.any(Number), 0]);
  expect(given[0]).toBeLessThan(3_000);
  expect(budget.share(1)).toBeLessThan(3_000);
  expect(told).toEqual([{ event: 'stop.step-cut', step: 'MQTT' }]);
});
