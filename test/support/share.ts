import { test, type TestAPI } from 'vitest';

const isPush = process.env['TEST_PART'] === 'push';

/** True in `npm run test:nightly`, false in `npm test` and `npm run test:all`. */
export const isLong = process.env['TEST_PART'] === 'long';

/** The number of random cases of a property: a quarter of them in `npm test`, all in `npm run test:all`. */
export function runs(all: number): number {
  return isPush ? Math.ceil(all / 4) : all;
}

/**
 * Cases that differ only in their set-up. `npm test` runs the first; `npm run test:nightly` runs the others through
 * an `x.long.test.ts` that imports `x.test.ts`. If there is only one case, both run it.
 */
export function shareOf<T>(cases: readonly T[]): T[] {
  if (!isLong) return cases.slice(0, 1);
  return cases.length > 1 ? cases.slice(1) : cases.slice();
}

/** Cases that only `npm run test:nightly` runs, through an `x.long.test.ts` that imports the file. */
export function longOnly<T>(cases: readonly T[]): T[] {
  return isLong ? cases.slice() : [];
}

/** Cases that `npm run test:nightly` need not repeat when it imports the file for its other cases. */
export function shortOnly<T>(cases: readonly T[]): T[] {
  return isLong ? [] : cases.slice();
}

const nothing = Object.assign(() => undefined, { each: () => () => undefined });
const none = nothing as unknown as TestAPI;

/** A test that only `npm run test:nightly` runs, through an `x.long.test.ts` that imports the file. */
export const long: TestAPI = isLong ? test : none;

/** A test in a file with `long` that `npm run test:nightly` need not repeat. */
export const short: TestAPI = isLong ? none : test;
