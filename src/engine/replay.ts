import type { Profile } from './compile.ts';
import { Evaluator } from './evaluator.ts';
import { decodeMeasurements } from './measurement-log.ts';
import { readRuntime } from './read-runtime.ts';
import type { StoredRuntime } from './read-runtime.ts';
import type { Runtime } from './runtime.ts';

/** What was added to evidence that is stored as a whole: measurements as `encodeMeasurements` writes them. */
export type StoredLog = { base: number; measurements: string };

/** What is evaluated at a stretch, in causes that judge a measurement: about a millisecond. */
const costAtOnce = 50_000;

/**
 * The runtime that was stored, and what was added to it evaluated again: exactly what there was. Rows of
 * another base count for nothing. `nextTurn` is awaited now and then.
 */
export async function replay(
  profile: Profile,
  stored: StoredRuntime,
  rows: StoredLog[],
  nextTurn: () => Promise<unknown>,
): Promise<Runtime> {
  const whole = readRuntime(profile, stored);
  const added = addedTo(stored, rows);
  if (added.length === 0) return whole;
  const evaluator = new Evaluator(profile, whole);
  let until = costAtOnce;
  for (const { measurements } of added) {
    for (const measurement of decodeMeasurements(measurements)) {
      // Profiles with members of time, for which it matters when that was, have no log.
      evaluator.measure(measurement, { t: measurement.ts, arrivedTs: measurement.ts }, false);
      if (evaluator.cost < until) continue;
      await nextTurn();
      until = evaluator.cost + costAtOnce;
    }
  }
  return evaluator.end();
}

/** Those rows that count. */
export function addedTo({ log }: StoredRuntime, rows: StoredLog[]): StoredLog[] {
  return log === undefined ? [] : rows.filter(({ base }) => base === log);
}
