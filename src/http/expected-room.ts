import { LRUCache } from 'lru-cache';

/** Pairs of account and route that are remembered. */
const maxRemembered = 10_000;
/** An answer may turn out so many times as large as those before. */
const margin = 2;
/** How much of what was large once is still expected with each later answer. */
const decay = 0.99;

/**
 * What requests are expected to take, by what answers to the same took lately. What may be large mostly is
 * not: if each took the most that it could, few would run at once.
 */
export type ExpectedRoom = {
  /** In bytes: between `least` and `most`, and `most` where nothing is known. */
  of(name: string, least: number, most: number): number;
  learn(name: string, bytes: number): void;
};

export function createExpectedRoom(): ExpectedRoom {
  const largest = new LRUCache<string, number>({ max: maxRemembered });
  return {
    of(name, least, most) {
      const known = largest.get(name);
      return known === undefined ? most : Math.min(most, Math.max(least, margin * known));
    },
    learn(name, bytes) {
      largest.set(name, Math.max(bytes, decay * (largest.get(name) ?? 0)));
    },
  };
}
