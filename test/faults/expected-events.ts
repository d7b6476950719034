import { compileProfile } from '../../src/engine/compile.ts';
import { evaluate } from '../../src/engine/evaluator.ts';
import type { Purpose } from '../../src/contract/purpose.ts';
import { startRuntime } from '../../src/engine/runtime.ts';
import { notice, type LastSeen } from '../../src/engine/last-seen.ts';
import type { Measurement } from '../../src/contract/values.ts';

/** An event reduced to what distinguishes it: type, time, and what fired or changed. */
export type EventMark = string;

/** What the engine makes of these measurements, in order. It is the pure function that the service uses. */
export function expectedEvents(
  pId: string,
  purposes: Purpose[],
  measurements: Measurement[],
): EventMark[] {
  const profile = compileProfile(pId, purposes);
  let runtime = startRuntime(profile, 0);
  let seen: LastSeen = {};
  const marks: EventMark[] = [];
  for (const measurement of measurements) {
    const noticed = notice(seen, measurement);
    if (!noticed) continue;
    seen = noticed;
    const evaluation = evaluate(profile, runtime, measurement);
    for (const { record, event } of evaluation.firings) {
      if (record) marks.push(markOf('sense', event.ts, event.cause.engine.evId));
    }
    const moved = evaluation.transition?.event;
    if (moved) marks.push(markOf(moved.event, moved.ts, moved.newValue));
    runtime = evaluation.runtime;
  }
  return marks.sort();
}

export const markOf = (kind: string, ts: number, value: number): EventMark =>
  `${ts} ${kind} ${value}`;
