import { expect, test } from 'vitest';
import { z } from 'zod';
import { describeIssue } from '../../src/lib/schema.ts';

test.each([
  [z.object({}), undefined, 'expected object, found nothing'],
  [z.number(), 'a', 'expected number, found string'],
  [z.array(z.int()), null, 'expected array, found null'],
  [z.enum(['en', 'de']), 'xx', 'expected one of "en", "de"'],
  [z.literal(3), 4, 'expected 3'],
  [z.number().min(1), 0, 'expected number to be >=1'],
  [z.string().max(2), 'abc', 'expected string to have <=2 characters'],
  [z.string().regex(/^0x/, 'expected 0x'), '1', 'expected 0x'],
])('of a schema and a value: %#', (schema, value, said) => {
  const [issue] = schema.safeParse(value).error?.issues ?? [];
  expect(describeIssue(issue?.message ?? '')).toBe(said);
});
