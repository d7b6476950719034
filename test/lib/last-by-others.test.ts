import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LastByOthers } from '../../src/lib/fair-queue.ts';

test('returns for each when somebody else last did something', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 4 })), (order) => {
      const last = new LastByOthers();
      order.forEach((who, at) => last.note(who, at));
      for (const who of [1, 2, 3, 4]) {
        const at = order.findLastIndex((other) => other !== who);
        expect(last.than(who)).toBe(at === -1 ? -Infinity : at);
      }
    }),
  );
});
