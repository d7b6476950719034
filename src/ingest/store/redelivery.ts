const expectedForMs = 10_000;

/** Whether batches may hold what is stored already, or another value in its millisecond. */
export type Redeliveries = {
  areExpected(): boolean;
  /** A batch held such a thing. */
  met(): void;
};

/**
 * A redelivery is rare, and comes in company: after a cut, when clocks stand still. So batches are
 * written as if there were none, until one fails for it; it and what follows for a while is written
 * the careful way.
 */
export function createRedeliveries(now: () => number): Redeliveries {
  let untilMs = -Infinity;
  return {
    areExpected: () => now() < untilMs,
    met() {
      untilMs = now() + expectedForMs;
    },
  };
}
