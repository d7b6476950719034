import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { WakeableRest } from '../../src/lib/wait.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('a rest ends when it is woken, or after its time', async () => {
  const rest = new WakeableRest();
  rest.begin();
  const woken = rest.rest(60_000);
  rest.wake();
  await woken;
  expect(vi.getTimerCount()).toBe(0);
  rest.begin();
  const slept = rest.rest(60_000);
  await vi.advanceTimersByTimeAsync(60_000);
  await slept;
});

test('a wake-up during a round ends the rest after it, and no later one', async () => {
  const rest = new WakeableRest();
  rest.begin();
  rest.wake();
  await rest.rest(60_000);
  rest.begin();
  let isOver = false;
  const next = rest.rest(60_000).then(() => (isOver = true));
  await vi.advanceTimersByTimeAsync(59_999);
  expect(isOver).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  await next;
});
