import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { checkInParts, isLarge } from '../../src/lib/schema.ts';

const Thing = z
  .object({
    name: z.string(),
    rows: z.array(z.object({ n: z.number(), tags: z.array(z.string()).default([]) })).optional(),
  })
  .refine(({ name }) => name !== 'never', 'is never right');

const pathsOf = (value: unknown) =>
  [...checkInParts(Thing, value)].flatMap(({ problems }) => problems.map(({ path }) => path));

describe('a value checked in parts', () => {
  test('has the problems of its members, with their paths, in parts that stay small', () => {
    const rows = Array.from({ length: 2_000 }, (_, n) => ({ n: n % 500 === 7 ? 'x' : n }));
    const parts = [...checkInParts(Thing, { name: 1, rows })];
    expect(parts.flatMap(({ problems }) => problems.map(({ path }) => path))).toEqual([
      ['name'],
      ...[7, 507, 1_007, 1_507].map((index) => ['rows', index, 'n']),
    ]);
    expect(Math.max(...parts.map(({ size }) => size))).toBeLessThanOrEqual(501);
    const list = { name: 'x', rows: [{ n: 1, tags: Array(5_000).fill(1) }] };
    expect(pathsOf(list)).toHaveLength(5_000);
  });

  test('is checked as a whole if it is small', () => {
    expect(isLarge({ name: 'x', rows: [{ n: 1 }] })).toBe(false);
    expect([...checkInParts(Thing, { name: 'never' })]).toMatchObject([
      { problems: [{ path: [], message: 'is never right' }] },
    ]);
  });

  test('has no problems that the schema does not find, and checks no more than the schema does', () => {
    const many = Array(3_000).fill(0);
    for (const value of [
      many,
      { name: 'x', rows: { many } },
      { many },
      null,
      'x',
      { rows: many },
    ]) {
      const issues = Thing.safeParse(value).error?.issues ?? [];
      const found = new Set(issues.map(({ path }) => path.join('/')));
      for (const path of pathsOf(value)) expect(found.has(path.join('/'))).toBe(true);
    }
  });
});
