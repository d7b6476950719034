import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { measureJson } from '../../src/lib/json.ts';

/** Counted by building the value and walking it. */
function walk(value: unknown): { depth: number; parts: number } {
  if (typeof value !== 'object' || value === null) return { depth: 0, parts: 0 };
  const inner = Object.values(value).map(walk);
  const names = Array.isArray(value) ? [] : Object.keys(value);
  return {
    depth: 1 + Math.max(0, ...inner.map(({ depth }) => depth)),
    parts:
      inner.reduce((sum, { parts }) => sum + parts, 1) +
      Math.max(0, inner.length - 1) +
      names.reduce((sum, name) => sum + beyondOne(name), 0),
  };
}

/** The extra count of a name: one for every further 16 characters begun. */
function beyondOne(name: string): number {
  return Math.max(0, Math.ceil((JSON.stringify(name).length - 2) / 16) - 1);
}

/** The greatest depth within the text; at its end the depth is 0 again. */
const deepest = (text: string) => {
  let maxDepth = 0;
  while (measureJson(text, maxDepth).depth > maxDepth) maxDepth += 1;
  return maxDepth;
};

describe('the measure of a text', () => {
  test('is what JSON.parse would build, whatever its strings contain', () => {
    const strings = fc
      .array(fc.constantFrom('"', '\\', ',', '[', '{', ']', 'x', '\n', ':'), { maxLength: 40 })
      .map((all) => all.join(''));
    const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
      tree: fc.oneof(
        { maxDepth: 4 },
        strings,
        fc.integer(),
        fc.array(tie('tree'), { maxLength: 4 }),
        fc.dictionary(strings, tie('tree'), { maxKeys: 4 }),
      ),
    }));
    fc.assert(
      fc.property(tree, fc.constantFrom(0, 1), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        const { depth, parts } = walk(JSON.parse(text));
        expect(measureJson(text)).toEqual({ depth: 0, parts });
        expect(deepest(text)).toBe(depth);
      }),
    );
  });

  test('counts long names as more, and long values as one', () => {
    const long = 'x'.repeat(44);
    expect(measureJson(JSON.stringify({ [long]: 1 })).parts).toBe(3);
    expect(measureJson(`{"${long}" \n\t : 1}`).parts).toBe(3);
    expect(measureJson(JSON.stringify({ name: long })).parts).toBe(1);
    expect(measureJson(JSON.stringify({ x234567890123456: 1 })).parts).toBe(1);
  });

  test('ends at a bound, and at the end of a text that is not JSON', () => {
    expect(measureJson('[[[[', 2).depth).toBe(3);
    expect(measureJson(',,,,', Infinity, 2).parts).toBe(3);
    for (const text of ['"', '"\\', '"\\"', '', '"\\\\', ']]]'])
      expect(measureJson(text).parts).toBe(0);
  });
});
