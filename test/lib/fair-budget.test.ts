import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { FairBudget, MemoryBudget, type Reservation } from '../../src/lib/fair-budget.ts';

const bounds = { maxBytes: 100, share: 1 / 2, maxWaiting: 6, maxWaitingOfKey: 4 };

/** Which of these have their memory. */
const areIn = (...places: (Reservation | null | undefined)[]) =>
  places.map((place) => place?.isIn ?? null);

test('reservations get memory up to the limit, and the next one waits until one leaves', async () => {
  const budget = new MemoryBudget(bounds);
  const places = ['a', 'b', 'c'].map((key) => budget.enter(key, 40)) as [
    Reservation,
    Reservation,
    Reservation,
  ];
  expect(areIn(...places)).toEqual([true, true, false]);
  places[0].leave();
  await places[2].entered;
  expect(areIn(...places)).toEqual([true, true, true]);
  expect(budget.used).toBe(80);
  for (const place of places) place.leave();
  for (const place of places) place.leave();
  expect([budget.used, budget.waiting]).toEqual([0, 0]);
});

test('a key has a share, and beyond it waits for its own reservations', () => {
  const budget = new MemoryBudget(bounds);
  const [first, second] = [budget.enter('a', 40), budget.enter('a', 20)];
  const other = budget.enter('b', 20);
  expect(areIn(first, second, other)).toEqual([true, false, true]);
  first?.leave();
  expect(areIn(second)).toEqual([true]);
});

test('keys take turns, and smaller reservations do not overtake one', () => {
  const budget = new MemoryBudget(bounds);
  const full = [budget.enter('x', 50), budget.enter('y', 50)];
  const a = [budget.enter('a', 50), budget.enter('a', 50)];
  const b = budget.enter('b', 50);
  const small = budget.enter('c', 1);
  expect(areIn(...a, b, small)).toEqual([false, false, false, false]);
  full[0]?.leave();
  expect(areIn(...a, b, small)).toEqual([true, false, false, false]);
  full[1]?.leave();
  expect(areIn(...a, b, small)).toEqual([true, false, true, false]);
  a[0]?.leave();
  expect(areIn(a[1], small)).toEqual([false, true]);
});

test('a reservation larger than a share, or than the whole budget, is admitted alone', () => {
  const budget = new MemoryBudget(bounds);
  const large = budget.enter('a', 1_000);
  const next = budget.enter('b', 1);
  expect(areIn(large, next)).toEqual([true, false]);
  large?.leave();
  expect(areIn(next)).toEqual([true]);
  const again = budget.enter('a', 1_000);
  expect(areIn(again)).toEqual([false]);
  next?.leave();
  expect(areIn(again)).toEqual([true]);
});

test('one that turns out smaller frees memory for others, one that turns out larger takes it', () => {
  const budget = new MemoryBudget(bounds);
  const first = budget.enter('a', 50);
  const waiting = budget.enter('a', 40);
  expect(areIn(waiting)).toEqual([false]);
  first?.resize(10);
  expect(areIn(waiting)).toEqual([true]);
  first?.resize(90);
  expect(budget.used).toBe(130);
  const other = budget.enter('b', 1);
  expect(areIn(other)).toEqual([false]);
  first?.leave();
  first?.resize(5);
  expect(areIn(other)).toEqual([true]);
  expect(budget.used).toBe(41);
});

test('the number of waiting reservations is limited, in total and per key; one that leaves makes room', () => {
  const budget = new MemoryBudget(bounds);
  const full = budget.enter('x', 100);
  const own = Array.from({ length: 5 }, () => budget.enter('a', 10));
  expect(areIn(...own)).toEqual([false, false, false, false, null]);
  const others = ['b', 'c', 'd'].map((key) => budget.enter(key, 10));
  expect(areIn(...others)).toEqual([false, false, null]);
  own[0]?.leave();
  const late = budget.enter('d', 10);
  expect(areIn(late)).toEqual([false]);
  full?.leave();
  expect(areIn(...own.slice(1, 4), others[0], others[1], late)).not.toContain(false);
  expect(budget.waiting).toBe(0);
});

test('an empty reservation counts too: the next one is not forgotten when it leaves', () => {
  const budget = new MemoryBudget(bounds);
  const first = budget.enter('a', 20);
  first?.resize(0);
  const second = budget.enter('a', 40);
  first?.leave();
  const third = budget.enter('a', 40);
  expect(areIn(second, third)).toEqual([true, false]);
  second?.leave();
  expect(areIn(third)).toEqual([true]);
});

test('who may have nothing is refused in time, and who has gone leaves the line', async () => {
  const budget = new FairBudget({ most: 1, mostOfKey: (key) => (key === 'none' ? 0 : 1) });
  const refuse = () => new Error('refused');
  await expect(budget.take('none', { withinMs: 1, refuse })).rejects.toThrow('refused');
  const leave = await budget.take('a', { refuse });
  const gone = new AbortController();
  const waits = budget.take('b', { signal: gone.signal, refuse });
  const after = budget.run('c', async () => 'done');
  expect(budget.waiting).toBe(2);
  gone.abort();
  await expect(waits).rejects.toThrow('refused');
  await expect(budget.take('b', { signal: gone.signal, refuse })).rejects.toThrow('refused');
  leave();
  leave();
  expect(await after).toBe('done');
  expect([budget.used, budget.waiting]).toEqual([0, 0]);
});

test('whoever waited for a place leaves no listener behind', async () => {
  const budget = new FairBudget({ most: 1, mostOfKey: () => 1 });
  const { signal } = new AbortController();
  const refuse = () => new Error('too many');
  const leave = await budget.take('a', { refuse });
  const second = budget.take('b', { signal, refuse });
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  leave();
  (await second)();
  await expect(budget.take('c', { signal, withinMs: 1, refuse })).resolves.toBeTypeOf('function');
  await expect(budget.take('d', { signal, withinMs: 1, refuse })).rejects.toThrow('too many');
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
