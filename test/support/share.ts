import { test, type TestAPI } from 'vitest';

const isPush = process.env['TEST_PART'] === 'push';

/** True in `npm run test:nightly`, false in `npm test` and `npm run test:all`. */
export const isLong = process.env['TEST_PART'] === 'long';

/** How many random cases of a property are tried: a quarter of them in `npm test`, all in `npm run test:all`. */
export function runs(all: number): number {
  return isPush ? Math.ceil(all / 4) : all;
}

/**
 * Cases that differ in their set-up only: `npm test` runs the first, `npm run test:nightly` the others, by
 * way of `x.long.test.ts` that imports `x.test.ts`. Where there is only one, both run it.
 */
export function shareOf<T>(cases: readonly T[]): T[] {
  if (!isLong) return cases.slice(0, 1);
  return cases.length > 1 ? cases.slice(1) : cases.slice();
}

/** Cases that only `npm run test:nightly` runs, by way of an `x.long.test.ts` that imports the file. */
export function longOnly<T>(cases: readonly T[]): T[] {
  return isLong ? cases.slice() : [];
}

/** Cases that `npm run test:nightly` has no need to repeat where it imports the file for its other cases. */
export function shortOnly<T>(cases: readonly T[]): T[] {
  return isLong ? [] : cases.slice();
}

const nothing = Object.assign(() => undefined, { each: () => () => undefined });
const none = nothing as unknown as TestAPI;

/** A test that only `npm run test:nightly` has, by way of an `x.long.test.ts` that imports the file. */
export const long: TestAPI = isLong ? test : none;

/** A test of a file with `long` that `npm run test:nightly` has no need to repeat. */
export const short: TestAPI = isLong ? none : test;
