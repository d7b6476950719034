import { expect, test } from 'vitest';
import { FairQueue } from '../../src/lib/fair-queue.ts';

const rest = (turns: FairQueue<string>, count = Infinity): string[] => {
  const taken: string[] = [];
  while (taken.length < count) {
    const next = turns.take();
    if (!next) return taken;
    taken.push(next.thing);
  }
  return taken;
};

const addressed = (turns: FairQueue<string>, address: string, ...things: string[]) => {
  for (const thing of things) turns.add({ address, who: '' }, thing);
};

test('addresses take turns, and so do the clients of each', () => {
  const turns = new FairQueue<string>();
  for (const thing of ['a1', 'a2', 'a3']) turns.add({ address: 'a', who: 'x' }, thing);
  turns.add({ address: 'a', who: 'y' }, 'ay');
  addressed(turns, 'b', 'b1', 'b2');
  expect(rest(turns)).toEqual(['a1', 'b1', 'ay', 'b2', 'a2', 'a3']);
  expect(turns.waiting).toBe(0);
});

test('a new client goes before those already served, once per round', () => {
  const turns = new FairQueue<string>();
  addressed(turns, 'a', 'a1', 'a2', 'a3', 'a4');
  addressed(turns, 'b', 'b1', 'b2', 'b3', 'b4');
  expect(rest(turns, 2)).toEqual(['a1', 'b1']);
  addressed(turns, 'new', 'n1');
  expect(rest(turns, 1)).toEqual(['n1']);
  // It has nothing left, and does not become new again before the others were served.
  addressed(turns, 'new', 'n2');
  expect(rest(turns, 3)).toEqual(['a2', 'b2', 'n2']);
  // It missed a round, so it is forgotten, and becomes new again.
  expect(rest(turns, 2)).toEqual(['a3', 'b3']);
  expect(rest(turns, 1)).toEqual(['a4']);
  addressed(turns, 'new', 'n3');
  expect(rest(turns)).toEqual(['n3', 'b4']);
});

test('the newest item of the client with most is removed, even if all were served', () => {
  const turns = new FairQueue<string>();
  addressed(turns, 'a', 'a1', 'a2', 'a3');
  addressed(turns, 'b', 'b1', 'b2');
  rest(turns, 1);
  addressed(turns, 'a', 'a4');
  expect(turns.takeFromLongest()).toBe('a4');
  expect(turns.waiting).toBe(4);
  expect(rest(turns)).toEqual(['b1', 'a2', 'b2', 'a3']);
  expect(() => turns.takeFromLongest()).toThrow('Nothing waits.');
});

test('a returning client is served, however many others are new each time', () => {
  const turns = new FairQueue<string>();
  const isServed = (add: (thing: string) => void, addNew: (n: number) => void) => {
    for (let n = 0; n < 10; n += 1) addNew(n);
    add('first');
    // For each one that is served, another arrives under a new name.
    for (let n = 10; n < 100; n += 1) {
      const { thing } = turns.take() ?? {};
      if (thing === 'first') add('second');
      else addNew(n);
      if (thing === 'second') return true;
    }
    return false;
  };
  const atAddress = isServed(
    (thing) => turns.add({ address: 'a', who: 'x' }, thing),
    (n) => turns.add({ address: 'a', who: `new ${n}` }, ''),
  );
  rest(turns);
  const atAddresses = isServed(
    (thing) => addressed(turns, 'b', thing),
    (n) => addressed(turns, `new ${n}`, ''),
  );
  expect({ atAddress, atAddresses }).toEqual({ atAddress: true, atAddresses: true });
});
