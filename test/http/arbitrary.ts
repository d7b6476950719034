import fc from 'fast-check';
import type { Schema } from './document.ts';

/** Values that no schema asks for but clients send, and that break careless code. */
export const strange: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    '',
    ' ',
    '\u0000',
    '\ud800',
    "'; drop table account; --",
    '__proto__',
    '0x',
    'NaN',
    '1e3',
    '٣',
    -0,
    -1,
    0.1,
    1e308,
    2 ** 31,
    2 ** 53,
    -(2 ** 63),
    [],
    {},
    [[]],
    { constructor: { prototype: null } },
    true,
    'x'.repeat(5_000),
    Array(300).fill(0),
  ),
  fc.jsonValue({ maxDepth: 3 }),
);

/** Values that fit a schema of the document, or nearly fit. */
export function fitting(schema: Schema, ids: string[]): fc.Arbitrary<unknown> {
  if (Array.isArray(schema['enum']))
    return fc.constantFrom<unknown>(...(schema['enum'] as unknown[]));
  if ('const' in schema) return fc.constant(schema['const']);
  const choices = schema['anyOf'] ?? schema['oneOf'] ?? schema['allOf'];
  if (Array.isArray(choices)) {
    return fc.oneof(...(choices as Schema[]).map((choice) => fitting(choice, ids)));
  }
  switch (schema['type']) {
    case 'string':
      return text(schema, ids);
    case 'integer':
      return fc.oneof(fc.integer({ min: 0, max: 5 }), fc.maxSafeInteger());
    case 'number':
      return fc.oneof(fc.integer({ min: -9, max: 9 }), fc.double({ noNaN: true }));
    case 'boolean':
      return fc.boolean();
    case 'array':
      return fc.array(fitting((schema['items'] ?? {}) as Schema, ids), { maxLength: 3 });
    case 'object':
      return object(schema, ids);
    default:
      return strange;
  }
}

function text(schema: Schema, ids: string[]): fc.Arbitrary<string> {
  const { format, pattern } = schema;
  if (format === 'uuid') return fc.oneof(fc.constantFrom(...ids), fc.uuid());
  if (format === 'email') return fc.emailAddress();
  if (format === 'password') return fc.string({ minLength: 6, maxLength: 12 });
  const any = fc.oneof(
    fc.string({ maxLength: 12, unit: 'grapheme' }),
    fc.constantFrom('0x01', ...ids),
  );
  if (typeof pattern !== 'string') return any;
  const right = fc.stringMatching(new RegExp(pattern, 'u'));
  return fc.oneof({ arbitrary: right, weight: 9 }, { arbitrary: any, weight: 1 });
}

function object(schema: Schema, ids: string[]): fc.Arbitrary<unknown> {
  const properties = (schema['properties'] ?? {}) as Record<string, Schema>;
  const required = (schema['required'] ?? []) as string[];
  const fields = Object.fromEntries(
    Object.entries(properties).map(([key, value]) => [key, fitting(value, ids)]),
  );
  return fc.record(fields, { requiredKeys: required });
}

/** The same value with something strange somewhere in it. */
export function spoilt(value: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc
    .tuple(value, fc.array(fc.nat(), { maxLength: 6 }), strange)
    .map(([whole, turns, odd]) => replaceAt(whole, turns, odd));
}

function replaceAt(value: unknown, [turn, ...rest]: number[], odd: unknown): unknown {
  if (turn === undefined || typeof value !== 'object' || value === null) return odd;
  const keys = Object.keys(value);
  const key = keys[turn % (keys.length + 1)];
  if (key === undefined) return odd;
  const inner = replaceAt((value as Record<string, unknown>)[key], rest, odd);
  return Array.isArray(value) ? value.with(Number(key), inner) : { ...value, [key]: inner };
}
