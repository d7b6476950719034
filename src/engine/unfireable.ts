import type { LiveEvent } from './compile-event.ts';
import type { CompiledCause } from './compile-cause.ts';
import type { Sense } from '../contract/configuration.ts';
import type { WarningCode } from '../contract/warnings.ts';
import { canAgree, maxTried } from './can-agree.ts';
import type { KnownSenses } from './known-senses.ts';

/** Why an event never fires. */
export type Never = { code: WarningCode; what: string };

/** Why a cause is never met, or null where it can be. `size`: what it took to find out, in microseconds or so. */
export type JudgedCause = { size: number; reason: Never | null };

/** What is to be said of each cause of an event, one after the other. `senses` where they are known. */
export function* whyUnfireable(event: LiveEvent, senses?: KnownSenses): Generator<JudgedCause> {
  if (event.causes.length === 0)
    yield { size: 1, reason: { code: 'event-without-causes', what: 'it has no causes' } };
  for (const cause of event.causes) {
    const before = senses?.tries ?? 0;
    const reason = whyCauseNever(cause, senses);
    const tried = 1 + before - (senses?.tries ?? 0);
    yield { size: tried * sizeOf(cause), reason };
  }
}

/** Of one range: as many values are tried as thresholds name, and each is looked for among these. */
function sizeOf({ thresholds: { isOneOf = [], isNotIn = [] } }: CompiledCause): number {
  const named = isOneOf.length + isNotIn.length;
  return named > maxTried ? 1 : 1 + named ** 2 / 100;
}

function whyCauseNever(cause: CompiledCause, known?: KnownSenses): Never | null {
  const { sId, reads, thresholds } = cause;
  // A sense that no device has is silent: such an event fires (`warnOfTime`).
  if (typeof cause.time?.noneForMs === 'number') return null;
  if (reads === 'nothing') {
    return thresholds.isInsideGeo
      ? {
          code: 'position-and-number',
          what: `its cause on ${sId} asks for a position and for a number at once`,
        }
      : { code: 'cause-without-thresholds', what: `its cause on ${sId} has no thresholds` };
  }
  if (!canAgree(cause, {}))
    return { code: 'no-value-fits', what: `no value meets its cause on ${sId}` };
  if (!known) return null;
  const senses = known.ranges.get(sId);
  if (!senses)
    return { code: 'no-device-has-sense', what: `no chosen device has the sense ${sId}` };
  if (canAgreeWithin(cause, senses, known)) return null;
  const what = `no value within the range of the sense ${sId} meets its cause`;
  return { code: 'out-of-range', what };
}

function canAgreeWithin(cause: CompiledCause, senses: Sense[], known: KnownSenses): boolean {
  for (const sense of senses) {
    if (known.tries <= 0) return true;
    known.tries -= 1;
    if (canAgree(cause, sense)) return true;
  }
  return false;
}
