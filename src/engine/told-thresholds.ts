import type { Thresholds } from '../contract/purpose.ts';

/** Longest list that is kept with each event. */
const longestTold = 16;

/** What is told of thresholds with each event. */
export function withoutLongLists(thresholds: Thresholds): Thresholds {
  const isShort = ([, value]: [string, unknown]) =>
    !Array.isArray(value) || value.length <= longestTold;
  return Object.fromEntries(Object.entries(thresholds).filter(isShort));
}
