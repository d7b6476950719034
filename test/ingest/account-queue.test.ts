import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createAccountQueue } from '../../src/ingest/queue.ts';

type Element = {
  accountId: number;
  previous: Element | null;
  next: Element | null;
  cost: number;
  number: number;
};

const quantum = 100;
const maxDebt = 2_000;
const largest = 300;

const readyOf = (maxDebtors?: number) =>
  createAccountQueue<Element>({ quantum, maxDebt, ...(maxDebtors ? { maxDebtors } : {}) });

const element = (accountId: number, cost: number, number = 0): Element => ({
  accountId,
  previous: null,
  next: null,
  cost,
  number,
});

/** Takes the next element, and charges its cost. */
function serve(turns: ReturnType<typeof readyOf>): Element | null {
  const next = turns.next();
  if (next) turns.charge(next.accountId, next.cost);
  return next;
}

const costs = fc.array(fc.integer({ min: 1, max: largest }), { minLength: 1, maxLength: 20 });

describe('accounts take turns', () => {
  test('that always have something waiting spend alike, whatever their messages cost', () => {
    fc.assert(
      fc.property(fc.array(costs, { minLength: 2, maxLength: 8 }), (accounts) => {
        const turns = readyOf();
        const spent = accounts.map(() => 0);
        const count = accounts.map(() => 0);
        const more = (id: number) => {
          const list = accounts[id] as number[];
          turns.add(element(id, list[(count[id] as number)++ % list.length] as number));
        };
        for (const id of accounts.keys()) for (let n = 0; n < 3; n++) more(id);
        for (let n = 0; n < 2_000; n++) {
          const { accountId, cost } = serve(turns) as Element;
          spent[accountId] = (spent[accountId] as number) + cost;
          more(accountId);
          const apart = Math.max(...spent) - Math.min(...spent);
          if (apart > 2 * (quantum + largest)) return false;
        }
        return true;
      }),
    );
  });

  test('a new one waits for at most one turn of each other', () => {
    fc.assert(
      fc.property(
        fc.array(costs, { minLength: 1, maxLength: 8 }),
        fc.nat({ max: 200 }),
        (accounts, served) => {
          const turns = readyOf();
          for (const [id, list] of accounts.entries())
            for (let n = 0; n < 1_000; n++) turns.add(element(id, list[n % list.length] as number));
          for (let n = 0; n < served; n++) serve(turns);
          turns.add(element(99, 1));
          const spent = accounts.map(() => 0);
          for (let next = serve(turns); next?.accountId !== 99; next = serve(turns)) {
            const { accountId = 0, cost = 0 } = next ?? {};
            spent[accountId] = (spent[accountId] as number) + cost;
          }
          return Math.max(...spent) <= quantum + largest;
        },
      ),
    );
  });

  test('an account’s elements keep their order, even if some are removed', () => {
    const steps = fc.array(
      fc.oneof(
        fc.record({ add: fc.nat({ max: 3 }), cost: fc.integer({ min: 1, max: largest }) }),
        fc.constant('take' as const),
        fc.record({ remove: fc.nat() }),
        fc.record({ charge: fc.nat({ max: 3 }), cost: fc.integer({ min: -500, max: 500 }) }),
      ),
      { maxLength: 200 },
    );
    fc.assert(
      fc.property(steps, (list) => {
        const turns = readyOf();
        let waiting: Element[] = [];
        let number = 0;
        for (const step of list) {
          if (step === 'take') {
            const taken = serve(turns);
            const first = waiting.find(({ accountId }) => accountId === taken?.accountId);
            expect(taken).toBe(first ?? null);
            waiting = waiting.filter((one) => one !== taken);
          } else if ('add' in step) {
            const added = element(step.add, step.cost, number++);
            waiting.push(added);
            turns.add(added);
          } else if ('remove' in step) {
            const [removed] = waiting.splice(step.remove % Math.max(1, waiting.length), 1);
            if (removed) turns.remove(removed);
          } else turns.charge(step.charge, step.cost);
          expect(turns.size).toBe(waiting.length);
          for (const id of [0, 1, 2, 3])
            expect(turns.othersWait(id)).toBe(waiting.some(({ accountId }) => accountId !== id));
        }
        while (turns.size > 0) expect(serve(turns)).not.toBeNull();
        expect(serve(turns)).toBeNull();
      }),
    );
  });
});

describe('what an account owes', () => {
  /** How much another account gets before this one's next element is taken. */
  function spentBefore(turns: ReturnType<typeof readyOf>, accountId: number): number {
    turns.add(element(accountId, 1));
    let spent = 0;
    for (let n = 0; n < 1_000; n++) turns.add(element(50, 10));
    for (let next = serve(turns); next && next.accountId !== accountId; next = serve(turns))
      spent += next.cost;
    return spent;
  }

  test('is paid off before its next turn, even after a pause', () => {
    const turns = readyOf();
    turns.add(element(50, 10));
    turns.add(element(1, 1));
    while (serve(turns));
    turns.charge(1, 1_000);
    expect(turns.countAccounts()).toBe(1);
    const spent = spentBefore(turns, 1);
    expect(spent).toBeGreaterThanOrEqual(900);
    expect(spent).toBeLessThanOrEqual(1_200);
  });

  test('is bounded', () => {
    const turns = readyOf();
    turns.charge(1, 1_000_000);
    const spent = spentBefore(turns, 1);
    expect(spent).toBeGreaterThanOrEqual(maxDebt - quantum);
    expect(spent).toBeLessThanOrEqual(maxDebt + 2 * quantum);
  });

  test('delays nobody who waits alone', () => {
    const turns = readyOf();
    turns.charge(1, 1_000_000);
    for (let n = 0; n < 100; n++) turns.add(element(1, largest));
    for (let n = 0; n < 100; n++) {
      expect(serve(turns)?.accountId).toBe(1);
      expect(turns.remaining()).toBe(Infinity);
    }
  });

  test('goes down as others have their turns, until the account is forgotten', () => {
    const turns = readyOf();
    turns.charge(1, 1_000);
    for (let n = 0; n < 300; n++) turns.add(element(50, 10));
    while (serve(turns));
    turns.charge(1, 0);
    expect(turns.countAccounts()).toBe(0);
  });

  test('is given back if less was spent than estimated', () => {
    const turns = readyOf();
    turns.charge(1, 1_000);
    turns.charge(1, -1_000);
    expect(turns.countAccounts()).toBe(0);
  });

  test('is remembered for a limited number of accounts', () => {
    const turns = readyOf(1_000);
    for (let id = 0; id < 20_000; id++) turns.charge(id, 100);
    expect(turns.countAccounts()).toBeLessThanOrEqual(1_600);
    expect(turns.countAccounts()).toBeGreaterThanOrEqual(500);
  });
});

test('a thousand accounts get their turns one after the other', () => {
  const turns = readyOf();
  const accounts = 1_000;
  for (let n = 0; n < 20; n++) for (let id = 0; id < accounts; id++) turns.add(element(id, 100));
  for (let n = 0; n < accounts * 20; n++) expect(serve(turns)?.accountId).toBe(n % accounts);
  expect(turns.countAccounts()).toBeLessThanOrEqual(accounts);
});
