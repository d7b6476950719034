import type { LiveEvent } from './compile-event.ts';
import type { Readers } from './readers.ts';
import { outcomesOfTime } from './timed.ts';

/** How much there is to judge and to keep: what a measurement takes at most, causes, and outcomes of windows. */
export type Weight = { judging: number; causes: number; outcomes: number };

export function sumOf(own: Weight, global: Weight): Weight {
  return {
    judging: own.judging + global.judging,
    causes: own.causes + global.causes,
    outcomes: own.outcomes + global.outcomes,
  };
}

export function weightOf(events: LiveEvent[], readers: Readers): Weight {
  const weight: Weight = { judging: 0, causes: 0, outcomes: 0 };
  for (const list of readers.values()) {
    const judging = list.reduce((sum, { cost }) => sum + cost, 0);
    weight.judging = Math.max(weight.judging, judging);
  }
  for (const { causes } of events) {
    weight.causes += causes.length;
    for (const { windowLength, time } of causes)
      weight.outcomes += windowLength + (time ? outcomesOfTime(windowLength, time) : 0);
  }
  return weight;
}
