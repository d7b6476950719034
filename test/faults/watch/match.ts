import type { Expected } from './expected.ts';

/**
 * Assigns each firing to an expected one, so that first as many required ones as possible are matched, and then as few
 * firings as possible are left: where times overlap, a firing may be either. Augmenting paths: what has a partner keeps
 * one.
 */
export function match(
  firings: readonly number[],
  expected: readonly Expected[],
): { lost: Expected[]; invented: number[] } {
  const firingOf = new Map<number, number>();
  const expectedOf = new Map<number, number>();
  const suits = (place: number, firing: number) => {
    const { fromTs, toTs } = expected[place] as Expected;
    const ts = firings[firing] as number;
    return fromTs <= ts && ts <= toTs;
  };
  const pair = (place: number, firing: number) => {
    firingOf.set(place, firing);
    expectedOf.set(firing, place);
  };
  const findFiring = (place: number, tried: Set<number>): boolean =>
    firings.some((_, firing) => {
      if (tried.has(firing) || !suits(place, firing)) return false;
      tried.add(firing);
      const other = expectedOf.get(firing);
      if (other !== undefined && !findFiring(other, tried)) return false;
      pair(place, firing);
      return true;
    });
  const findExpected = (firing: number, tried: Set<number>): boolean =>
    expected.some((_, place) => {
      if (tried.has(place) || !suits(place, firing)) return false;
      tried.add(place);
      const other = firingOf.get(place);
      if (other !== undefined && !findExpected(other, tried)) return false;
      pair(place, firing);
      return true;
    });
  for (const [place, { isRequired }] of expected.entries())
    if (isRequired) findFiring(place, new Set());
  for (const firing of firings.keys()) if (!expectedOf.has(firing)) findExpected(firing, new Set());
  return {
    lost: expected.filter(({ isRequired }, place) => isRequired && !firingOf.has(place)),
    invented: firings.filter((_, firing) => !expectedOf.has(firing)),
  };
}
