import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { measureJson } from '../../src/lib/json.ts';

/** Counted by parsing the value and walking through it. */
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

/** A name of more than 16 characters counts as one more for every further 16 or part of them. */
function beyondOne(name: string): number {
  return Math.max(0, Math.ceil((JSON.stringify(name).length - 2) / 16) - 1);
}

/** The deepest level of the text; at its end `depth` is 0 again. */
const deepest = (text: string) => {
  let maxDepth = 0;
  while (measureJson(text, maxDepth).depth > maxDepth) maxDepth += 1;
  return maxDepth;
};

describe('the measured depth and parts of a text', () => {
  test('are those that JSON.parse would build, whatever its strings contain', () => {
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

  test('count long names for more, but not long values', () => {
    const long = 'x'.repeat(44);
    expect(measureJson(JSON.stringify({ [long]: 1 })).parts).toBe(3);
    expect(measureJson(`{"${long}" \n\t : 1}`).parts).toBe(3);
    expect(measureJson(JSON.stringify({ name: long })).parts).toBe(1);
    expect(measureJson(JSON.stringify({ x234567890123456: 1 })).parts).toBe(1);
  });

  test('stop at a limit, and at the end of a text that is not JSON', () => {
    expect(measureJson('[[[[', 2).depth).toBe(3);
    expect(measureJson(',,,,', Infinity, 2).parts).toBe(3);
    for (const text of ['"', '"\\', '"\\"', '', '"\\\\', ']]]'])
      expect(measureJson(text).parts).toBe(0);
  });
});
