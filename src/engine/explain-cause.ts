import { z } from 'zod';
import { comparedOf, senseOf } from './build-event.ts';
import type { CompiledCause } from './compile-cause.ts';
import { lastOf, Position } from '../contract/measurement.ts';
import { Thresholds } from '../contract/purpose.ts';
import { timeMembers } from './explain-time.ts';
import type { LastSeen } from './last-seen.ts';
import type { Agreed, CauseEvidence } from './runtime.ts';
import type { CauseTime } from './time-evidence.ts';
import { holdsInTime } from './time-kept.ts';

/** What a cause of a live event has collected, and what it still lacks. */
export const CauseExplanation = z.object({
  sId: z.string(),
  orderId: z.int(),
  thresholds: Thresholds,
  negate: z.boolean(),
  relative: z.boolean(),
  decimalAcc: z.int().optional(),
  /** Relative causes compare with this value; absent before the first measurement. */
  baseline: z.number().optional(),
  /** How many of the last `of` measurements agreed; `windowLength` is the most that are looked at. */
  matched: z.int(),
  of: z.int(),
  windowLength: z.int(),
  needed: z.int(),
  missing: z.int(),
  holds: z.boolean(),
  /** The newest measurement in the window that agreed. */
  agreed: z
    .object({
      val: z.number(),
      ts: z.int(),
      compared: z.number().optional(),
      lat: z.number().optional(),
      long: z.number().optional(),
    })
    .meta({ id: 'AgreedMeasurement' })
    .optional(),
  ...timeMembers,
  /** The sense's newest measurement; older ones, and the same again, are not evaluated. */
  seen: z
    .object({ val: z.union([z.number(), Position]), ts: z.int() })
    .meta({ id: 'SeenMeasurement' })
    .optional(),
});
export type CauseExplanation = z.infer<typeof CauseExplanation>;

/** Without its members of time (`explainTime`). */
export function explainCause(
  cause: CompiledCause,
  collected: CauseEvidence | null,
  time: CauseTime | null,
  seen: LastSeen,
): CauseExplanation {
  const { sId, orderId, thresholds, negate, relative, decimalAcc, needed, windowLength } = cause;
  const { matched = 0, of = 0 } = collected ?? {};
  const newest = Object.hasOwn(seen, sId) ? seen[sId] : undefined;
  const val = lastOf(newest);
  return {
    sId,
    orderId,
    thresholds,
    negate,
    relative,
    matched,
    of,
    windowLength,
    needed,
    // A silence does not count measurements.
    missing: typeof cause.time?.noneForMs === 'number' ? 0 : Math.max(0, needed - matched),
    holds: holdsInTime(cause, collected, time),
    ...(decimalAcc === null ? {} : { decimalAcc }),
    ...(collected?.baseline === undefined ? {} : { baseline: collected.baseline }),
    ...(collected?.agreed ? { agreed: agreedOf(cause, collected, collected.agreed, time) } : {}),
    ...(newest && val !== undefined ? { seen: { val, ts: newest.ts } } : {}),
  };
}

function agreedOf(
  cause: CompiledCause,
  collected: CauseEvidence,
  agreed: Agreed,
  time: CauseTime | null,
) {
  const { sId: _sId, ...told } = senseOf(cause, agreed);
  const compared = time?.compared ?? comparedOf(cause, collected);
  return compared === undefined ? told : { ...told, compared };
}
