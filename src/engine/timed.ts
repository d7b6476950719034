import type { LiveEvent } from './compile-event.ts';
import type { TimeMembers } from './compile-cause.ts';

/** Those of some events that have members of time. */
export type Timed = {
  /** With a cause that waits for ticks, in order. */
  ticking: LiveEvent[];
  /** With a cause that has `noneForMs`. */
  withSilences: LiveEvent[];
  /** By sense, those in which a cause that reads it has `forMs`. */
  withRuns: ReadonlyMap<string, LiveEvent[]>;
};

export function timedOf(events: LiveEvent[]): Timed {
  const hasSilence = ({ causes }: LiveEvent) => causes.some(({ time }) => time?.noneForMs);
  const withRuns = new Map<string, LiveEvent[]>();
  for (const event of events) {
    const runs = event.causes.filter(({ time }) => time?.forMs);
    for (const sId of new Set(runs.map((cause) => cause.sId)))
      withRuns.set(sId, [...(withRuns.get(sId) ?? []), event]);
  }
  const hasRun = ({ causes }: LiveEvent) => causes.some(({ time }) => time?.forMs);
  return {
    ticking: events.filter((event) => hasSilence(event) || hasRun(event)),
    withSilences: events.filter(hasSilence),
    withRuns,
  };
}

/** What members of time take where they are kept, in outcomes of a window. */
export function outcomesOfTime(windowLength: number, { over, maxAgeMs }: TimeMembers): number {
  return 600 + (over ? 3_600 : 0) + (maxAgeMs ? 100 * windowLength : 0);
}
