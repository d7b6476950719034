import { describe, expect, test } from 'vitest';
import {
  createLargeMessageBudget,
  type LargePlace,
} from '../../connector/device/large-messages.ts';

const size = 256;

/** Asks for places of `size`, and records who got in, in order. */
function visitors(budget: ReturnType<typeof createLargeMessageBudget>) {
  const entered: string[] = [];
  const places = new Map<string, LargePlace>();
  return {
    entered,
    enter(account: number, name: string, bytes = size): void {
      const place = budget.enter(account, bytes, () => entered.push(name));
      if (place.isIn) entered.push(name);
      places.set(name, place);
    },
    leave: (...names: string[]) => names.forEach((name) => places.get(name)?.leave()),
    isIn: (name: string) => places.get(name)?.isIn,
  };
}

describe('the budget for large messages', () => {
  test('gives half to one account, however much it asks for, and leaves some for others', () => {
    const maxBytes = 64 * size;
    const budget = createLargeMessageBudget(maxBytes);
    const all = visitors(budget);
    for (let n = 0; n < 200; n += 1) all.enter(1, `greedy ${n}`);
    expect(budget.bytes() / maxBytes).toBeCloseTo(1 / 2, 1);
    expect(budget.waiting()).toBe(200 - budget.bytes() / size);
    for (let account = 2; account <= 10; account += 1)
      for (let n = 0; n < 200; n += 1) all.enter(account, `${account} ${n}`);
    for (let account = 11; account <= 18; account += 1) {
      all.enter(account, `honest ${account}`);
      expect(all.isIn(`honest ${account}`)).toBe(true);
    }
    expect(budget.bytes()).toBeLessThanOrEqual(maxBytes);
  });

  test('counts what an account has even if an old place is left twice', () => {
    const budget = createLargeMessageBudget(64 * size);
    const { enter, leave, isIn } = visitors(budget);
    enter(1, 'before');
    leave('before');
    enter(1, 'large', 40 * size);
    leave('before');
    enter(1, 'more', 20 * size);
    expect([isIn('large'), isIn('more')]).toEqual([true, false]);
  });

  test('is given to accounts in turn, and within an account in order', () => {
    const budget = createLargeMessageBudget(size);
    const { entered, enter, leave } = visitors(budget);
    enter(1, 'a1');
    for (const name of ['a2', 'a3', 'a4']) enter(1, name);
    for (const name of ['b1', 'b2']) enter(2, name);
    for (let n = 0; n < 6; n += 1) leave(entered.at(-1) ?? '');
    expect(entered).toEqual(['a1', 'a2', 'b1', 'a3', 'b2', 'a4']);
    expect([budget.bytes(), budget.waiting()]).toEqual([0, 0]);
  });

  test('lets in one message that is larger than the whole budget, alone', () => {
    const budget = createLargeMessageBudget(size);
    const { entered, enter, leave } = visitors(budget);
    enter(1, 'large', 10 * size);
    enter(2, 'other');
    expect(entered).toEqual(['large']);
    leave('large', 'large');
    expect(entered).toEqual(['large', 'other']);
    expect(budget.bytes()).toBe(size);
  });

  test('loses nothing to messages that leave while waiting', () => {
    const budget = createLargeMessageBudget(size);
    const { entered, enter, leave } = visitors(budget);
    for (const name of ['a', 'b', 'c']) enter(1, name);
    leave('b', 'b', 'a');
    expect(entered).toEqual(['a', 'c']);
    leave('c');
    expect([budget.bytes(), budget.waiting()]).toEqual([0, 0]);
  });

  test('is passed on by many that leave as soon as they are let in', () => {
    const budget = createLargeMessageBudget(size);
    const first = budget.enter(1, size, () => {});
    let left = 0;
    for (let n = 0; n < 20_000; n += 1) {
      const place: LargePlace = budget.enter(n % 7, size, () => {
        left += 1;
        place.leave();
      });
    }
    first.leave();
    expect([left, budget.bytes(), budget.waiting()]).toEqual([20_000, 0, 0]);
  });
});
