import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { checkInParts, findUnknownMembers, knownOf } from '../../src/lib/schema.ts';

const many = Array.from({ length: 2_000 }, (_, n) => (n === 1_500 ? 'x' : n));
const list = z.array(z.number());

/** The sizes of what was checked at once, and the places of faults. */
function partsOf(schema: z.ZodType, value: unknown) {
  const parts = [...checkInParts(schema, value)];
  return {
    largest: Math.max(...parts.map(({ size }) => size)),
    paths: parts.flatMap(({ problems }) => problems.map(({ path }) => path)),
  };
}

describe('a schema is divided by its definition', () => {
  test.each([
    ['an array', list],
    ['an optional one', list.optional()],
    ['a nullable one', list.nullable()],
    ['one with a default', list.default([])],
    ['one with a prefault', list.prefault([])],
    ['a refined one', list.refine(() => true)],
    ['wrapped twice', list.nullable().optional()],
  ])('%s, by its elements', (_, schema) => {
    expect(partsOf(schema, many)).toEqual({ largest: 1, paths: [[1_500]] });
  });

  test('an object, by the members of its shape', () => {
    const schema = z.object({ name: z.string(), rows: list.optional() });
    expect(partsOf(schema, { name: 1, rows: many })).toEqual({
      largest: 1,
      paths: [['name'], ['rows', 1_500]],
    });
    expect(partsOf(z.strictObject({ rows: list }), { rows: many }).paths).toEqual([
      ['rows', 1_500],
    ]);
  });

  test('anything else stays whole', () => {
    const { largest, paths } = partsOf(z.union([list, z.string()]), many);
    expect(largest).toBeGreaterThan(500);
    expect(paths).toHaveLength(1);
  });
});

describe('the members that a schema knows are read from its definition', () => {
  const one = z.object({ a: z.int() });
  test.each([
    ['an object', one],
    ['a strict one', z.strictObject({ a: z.int() })],
    ['a refined one', one.superRefine(() => {})],
    ['an optional one with a default', one.optional().default({ a: 1 })],
    ['a transformed one, by its input', one.transform(() => 1)],
    ['one that is transformed first', one.pipe(z.object({ a: z.int() }))],
    ['a union', z.union([one, z.string()])],
    ['a union by a discriminator', z.discriminatedUnion('a', [z.object({ a: z.literal(1) })])],
  ])('%s', (_, schema) => {
    const unknown = findUnknownMembers(knownOf(schema), { a: 1, b: 2 }, 10);
    expect(unknown.map(({ path }) => path)).toEqual([['b']]);
  });

  test.each([
    ['a loose object', z.looseObject({ a: z.int() })],
    ['one with a catchall', one.catchall(z.int())],
    ['a record', z.record(z.string(), z.int())],
    ['anything', z.unknown()],
  ])('%s accepts any', (_, schema) => {
    expect(findUnknownMembers(knownOf(schema), { a: 1, b: 2 }, 10)).toEqual([]);
  });
});
