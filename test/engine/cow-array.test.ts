import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CowArray } from '../../src/engine/last-seen.ts';

test('a copy with another element has that element, and the original does not', () => {
  const change = fc.tuple(fc.nat(99), fc.integer());
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 100 }), fc.array(change), (length, changes) => {
      const plain = Array.from({ length }, (): number | undefined => undefined);
      let pages = CowArray.of<number>(plain);
      for (const [at, value] of changes) {
        const [before, index] = [pages, at % length];
        pages = pages.with(index, value);
        expect(plain.map((_, i) => before.get(i))).toEqual(plain);
        plain[index] = value;
      }
      expect(plain.map((_, i) => pages.get(i))).toEqual(plain);
    }),
  );
});
