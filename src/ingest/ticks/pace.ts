export type TickPace = {
  /** Between two looks at what is due. */
  lookMs: number;
  /** What is due of devices that are another process's is taken so much later. */
  othersAfterMs: number;
  /** Devices that one look takes in, and of one account while there are more. */
  atOnce: number;
  ofAccountAtOnce: number;
  /** Ticks that wait for their commit, and of a second, of all. */
  maxUnderWay: number;
  perSecond: number;
  /** Between two portions, while there are more than these. */
  portionMs: number;
};

/**
 * A commit waits for the disk, and messages for the commits of others: ticks come in portions that fill a
 * transaction, few a second, and no faster than a large fleet needs them (`npm run bench:ticks`).
 */
export const usualTickPace: TickPace = {
  lookMs: 1_000,
  othersAfterMs: 5_000,
  atOnce: 2_000,
  ofAccountAtOnce: 200,
  maxUnderWay: 500,
  perSecond: 2_500,
  portionMs: 100,
};

export type TickObserver = {
  /** What became of one. */
  done(outcome: 'stored' | 'left' | 'put-off'): void;
  /** For how long the oldest tick is due, in seconds; 0: none is. */
  behind(seconds: number): void;
};
