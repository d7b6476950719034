/** The time that all steps of a stop have together. */
export type StopBudget = {
  /** This part (0 to 1) of what is left, in milliseconds. */
  share(part: number): number;
};

export function createBudget(totalMs: number): StopBudget {
  // oxlint-disable-next-line no-restricted-globals -- the end of a process is timed by the machine
  const endMs = performance.now() + totalMs;
  // oxlint-disable-next-line no-restricted-globals -- the end of a process is timed by the machine
  return { share: (part) => Math.max(0, endMs - performance.now()) * part };
}

/** Of its share a step is told so much: with the rest it can notice in time that it is over. */
const toldPart = 0.85;

/** A step took longer than its share; it was left where it was. */
export class StepCut extends Error {
  readonly shareMs: number;

  constructor(shareMs: number) {
    super(`A step of stopping took longer than its ${Math.round(shareMs)} ms.`);
    this.name = 'StepCut';
    this.shareMs = Math.round(shareMs);
  }
}

/**
 * Waits for a step, for `shareMs` at most; rejects with a StepCut when it takes longer, and leaves it
 * alone then. `step` is told how long it may wait for others.
 */
export async function inTime(step: (withinMs: number) => unknown, shareMs: number): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new StepCut(shareMs)), shareMs);
  try {
    await Promise.race([(async () => step(shareMs * toldPart))(), late]);
  } finally {
    clearTimeout(timer);
  }
}
