import { describe, expect, test } from 'vitest';
import { isAllowed, nextChecks } from '../../src/secret-check/secret-check.ts';

type Row = { noted: string; secret: string | null; previous?: string; isInUse?: boolean };
const listed = (noted: string) => (noted === '' ? [] : noted.split(' '));
const allows = ({ noted, secret, previous = null as never, isInUse = true }: Row) =>
  isAllowed(listed(noted), { current: secret, previous }, isInUse);

describe('a secret is allowed', () => {
  test.each<Row>([
    { noted: 'A', secret: 'A' },
    { noted: 'B A', secret: 'A' },
    { noted: 'A', secret: 'B', previous: 'A' },
    // There is none, but what the database knows is still accepted, so a new one may be created.
    { noted: 'A', secret: null, previous: 'A' },
    // Of a version that recorded nothing.
    { noted: '', secret: 'A' },
    { noted: '', secret: null, isInUse: false },
    { noted: 'A', secret: 'B', isInUse: false },
    { noted: 'A', secret: null, isInUse: false },
  ])('$noted noted, $secret given, previous $previous, in use: $isInUse', (row) => {
    expect(allows(row)).toBe(true);
  });
});

describe('a secret is refused', () => {
  test.each<Row>([
    { noted: 'A', secret: 'B' },
    { noted: 'A', secret: null },
    { noted: 'A', secret: 'B', previous: 'C' },
    { noted: '', secret: null },
    // It is unknown whether the previous one is theirs, and a new one is not.
    { noted: '', secret: null, previous: 'A' },
  ])('$noted noted, $secret given, previous $previous', (row) => {
    expect(allows(row)).toBe(false);
  });
});

describe('the check values that are kept afterwards', () => {
  const table: [noted: string, secret: string, previous: string | null, next: string][] = [
    ['', 'A', null, 'A'],
    ['A', 'A', null, 'A'],
    ['A', 'B', null, 'B'],
    ['', 'B', 'A', 'B A'],
    ['C', 'B', 'A', 'B A'],
    ['A', 'A', 'A', 'A'],
    // One process after the other gets B, with A as the previous one.
    ['A', 'B', 'A', 'B A'],
    ['B A', 'B', 'A', 'B A'],
    ['B A', 'A', null, 'B A'],
    // The first without SECRET_PREVIOUS ends the change; one that still has it does not begin it again.
    ['B A', 'B', null, 'B'],
    ['B', 'B', 'A', 'B'],
    // All were told of B before it was used.
    ['A', 'A', 'B', 'A'],
    // Back to A.
    ['B A', 'A', 'B', 'A B'],
    // The next change begins before the last one has ended.
    ['B A', 'C', 'B', 'C B A'],
    ['C B A', 'B', 'A', 'C B A'],
    ['C B A', 'C', null, 'C'],
  ];
  test.each(table)('"%s" noted, %s given, previous %s: "%s"', (noted, secret, previous, next) => {
    expect(nextChecks(listed(noted), secret, previous).join(' ')).toBe(next);
  });
});
