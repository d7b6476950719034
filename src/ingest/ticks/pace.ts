export type TickPace = {
  /** Between two looks at what is due. */
  lookMs: number;
  /** What is due of devices that another process has, or nobody, is taken so much later. */
  othersAfterMs: number;
  /** Devices that one look takes in, and of one account while there are more. */
  atOnce: number;
  ofAccountAtOnce: number;
  /** Ticks that wait for their commit; and a second, of all. */
  maxUnderWay: number;
  perSecond: number;
};

/**
 * Ticks share transactions with messages, which wait as long as those take: many ticks at once would make
 * each message wait. So they come in small numbers, and no faster than a fleet needs them (bench/ticks.ts).
 */
export const usualTickPace: TickPace = {
  lookMs: 1_000,
  othersAfterMs: 5_000,
  atOnce: 2_000,
  ofAccountAtOnce: 200,
  maxUnderWay: 50,
  perSecond: 3_000,
};

export type TickObserver = {
  /** What became of one. */
  done(outcome: 'stored' | 'left' | 'put-off'): void;
  /** For how long the oldest tick is due, in seconds; 0: none is. */
  behind(seconds: number): void;
};
