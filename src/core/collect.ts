import type { CompiledCause, LiveEvent } from './compile-event.ts';
import { judge } from './judge.ts';
import type { Judgement } from './judge.ts';
import type { Measurement } from './measurement.ts';
import type { Agreed, CauseEvidence, EventEvidence } from './runtime.ts';
import { storable } from './seen.ts';

/**
 * Adds a measurement to what an event's causes (those at `indexes`) have collected. A cause that
 * disagrees ends the episode. Gives the very object that was there where it is as it was: none of them
 * evaluates such a value, or it says what the ones before said.
 */
export function collect(
  event: LiveEvent,
  indexes: number[],
  before: EventEvidence | undefined,
  measurement: Measurement,
): EventEvidence | undefined {
  const known: EventEvidence['causes'] = before?.causes ?? event.causes.map(() => null);
  let causes = known;
  let disagreed = false;
  for (const index of indexes) {
    const cause = event.causes[index];
    const collected = causes[index] ?? null;
    const judgement = cause && judge(cause, measurement.val, collected?.baseline);
    if (!judgement) continue;
    if (!judgement.agrees) disagreed = true;
    const added = add(cause, collected, judgement, measurement);
    if (added === collected) continue;
    if (causes === known) causes = known.slice();
    causes[index] = added;
  }
  // Of an episode that has rung all outcomes agreed: one that ends it is a new one.
  if (causes === known) return before;
  return before?.rung && !disagreed ? { causes, rung: true } : { causes };
}

/** Whether every cause of the event holds. An event without causes never does. */
export function isComplete(event: LiveEvent, evidence: EventEvidence): boolean {
  return (
    event.causes.length > 0 &&
    event.causes.every(
      (cause, index) => countAgreed(evidence.causes[index]?.window ?? '') >= cause.needed,
    )
  );
}

/** What is left after a firing: empty windows, the baselines, and that the episode has rung. */
export function useUp(event: LiveEvent, evidence: EventEvidence): EventEvidence {
  const causes = evidence.causes.map((collected) =>
    collected?.baseline === undefined ? null : { window: '', baseline: collected.baseline },
  );
  return event.rings && !event.ringsAlways ? { causes, rung: true } : { causes };
}

/** How many measurements in a window agreed. */
export function countAgreed(window: string): number {
  let count = 0;
  for (let index = 0; index < window.length; index++) if (window[index] === '1') count++;
  return count;
}

function add(
  cause: CompiledCause,
  collected: CauseEvidence | null,
  judgement: Judgement,
  measurement: Measurement,
): CauseEvidence {
  const outcome = judgement.agrees ? '1' : '0';
  const window = ((collected?.window ?? '') + outcome).slice(-cause.windowLength);
  const next: CauseEvidence = { window };
  const { val } = measurement;
  const baseline =
    collected?.baseline ?? (cause.relative && typeof val === 'number' ? val + 0 : undefined);
  if (baseline !== undefined) next.baseline = baseline;
  const agreed = judgement.agrees ? agreedOf(judgement, measurement) : collected?.agreed;
  if (agreed && window.includes('1')) next.agreed = agreed;
  return collected && isSame(collected, next) ? collected : next;
}

/** Whether nothing was added: the oldest outcome has made room for one like it, and none agreed anew. */
function isSame(one: CauseEvidence, other: CauseEvidence): boolean {
  return (
    one.window === other.window && one.baseline === other.baseline && one.agreed === other.agreed
  );
}

function agreedOf({ compared, inside }: Judgement, { val: measured, ts }: Measurement): Agreed {
  const val = storable(measured);
  if (typeof val !== 'number') return { val: inside === true ? 1 : 0, ts, ...val };
  return compared === undefined ? { val, ts } : { val, ts, compared };
}
