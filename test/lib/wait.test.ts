import { expect, test } from 'vitest';
import { backoffMs, pause, waitAtMost, waitUntil } from '../../src/lib/wait.ts';

const never = new Promise<void>(() => undefined);
const anHour = 3_600_000;

test('a pause ends when it is aborted, even before it began', async () => {
  const stopping = new AbortController();
  const paused = pause(anHour, stopping.signal);
  stopping.abort();
  await paused;
  await pause(anHour, stopping.signal);
});

test('waiting for work ends with it, or after the given time', async () => {
  expect(await waitAtMost(Promise.resolve('x'), anHour)).toBe(true);
  expect(await waitAtMost(never, 1)).toBe(false);
  await expect(waitAtMost(Promise.reject(new Error('no')), anHour)).rejects.toThrow('no');
});

test('a condition is polled until it holds, or time is up', async () => {
  let looks = 0;
  await waitUntil(() => (looks += 1) > 2, anHour);
  expect(looks).toBe(3);
  await waitUntil(() => false, 1);
});

test('waits double up to the longest', () => {
  const bounds = { firstMs: 20, maxMs: 100 };
  expect([1, 2, 3, 4, 50].map((failures) => backoffMs(failures, bounds))).toEqual([
    20, 40, 80, 100, 100,
  ]);
});
