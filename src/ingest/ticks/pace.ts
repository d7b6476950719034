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
 * Messages wait for the event loop and for the commits of others: ticks come in small portions, fifty of them every 20 ms,
 * and no faster than a large fleet needs them. Five times as large and as seldom, they made the slowest
 * acknowledgements twice as slow (`npm run bench:ticks`).
 */
export const usualTickPace: TickPace = {
  lookMs: 1_000,
  othersAfterMs: 5_000,
  atOnce: 2_000,
  ofAccountAtOnce: 200,
  maxUnderWay: 100,
  perSecond: 2_500,
  portionMs: 20,
};

export type TickObserver = {
  /** What became of one. */
  done(outcome: 'stored' | 'left' | 'put-off'): void;
  /** For how long the oldest tick is due, in seconds; 0: none is. */
  behind(seconds: number): void;
};
