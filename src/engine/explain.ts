import { z } from 'zod';
import type { CompiledCause, LiveEvent } from './compile-event.ts';
import type { Profile } from './compile.ts';
import { comparedOf, senseOf } from './build-event.ts';
import { Position } from '../contract/measurement.ts';
import { Thresholds } from '../contract/purpose.ts';
import type { Agreed, CauseEvidence, Runtime } from './runtime.ts';
import { explainTime, timeMembers } from './explain-time.ts';
import type { LastSeen } from './last-seen.ts';
import type { Listening } from './listening.ts';
import { ticksOf } from './ticks.ts';
import type { Known } from './ticks.ts';
import type { CauseTime } from './time-evidence.ts';
import { holdsInTime } from './time-left.ts';

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

/** A live event. `rung`: people were notified; nobody is again until one of its causes disagrees, or the state is entered anew. */
export const EventExplanation = z.object({
  stId: z.int(),
  evId: z.int(),
  name: z.string(),
  isGlobal: z.boolean(),
  rung: z.boolean(),
  causes: z.array(CauseExplanation),
});
export type EventExplanation = z.infer<typeof EventExplanation>;

/** Where a device stands in its profile, and how far each live event is from firing. */
export const Explanation = z.object({
  pId: z.string(),
  puId: z.int(),
  stId: z.int(),
  events: z.array(EventExplanation),
});
export type Explanation = z.infer<typeof Explanation>;

/** When it is asked, ms, and when the device's connector listened. */
export type Asked = { nowTs: number; listening?: Listening | undefined };

/**
 * Says for each live event, in the order in which they are tried, what its causes have and lack. Without `asked`
 * a gap in listening that lasts is over.
 */
export function explain(
  profile: Profile,
  runtime: Runtime,
  seen: LastSeen,
  { nowTs, listening = { gaps: [] } }: Asked = { nowTs: -Infinity },
): Explanation {
  const { puId, stId } = runtime;
  const purpose = profile.purposes.get(puId);
  const own = purpose?.states.get(stId)?.events ?? [];
  const global = purpose?.globalEvents.filter((event) => event.stId !== stId) ?? [];
  const known = { listening, nowTs };
  const events = [...own, ...global].map((event) => explainEvent(event, runtime, seen, known));
  return { pId: profile.pId, puId, stId, events };
}

function explainEvent(
  event: LiveEvent,
  runtime: Runtime,
  seen: LastSeen,
  known: Known,
): EventExplanation {
  const { stId, evId, name, isGlobal } = event;
  const evidence = (isGlobal ? runtime.global : runtime.local)[event.index] ?? null;
  const ticks = event.isTimed ? ticksOf(event, evidence, known) : [];
  const causes = event.causes.map((cause, index) => {
    const time = evidence?.time?.causes[index] ?? null;
    const tick = ticks.find((it) => it.index === index);
    return {
      ...explainCause(cause, evidence?.causes[index] ?? null, time, seen),
      ...(cause.time && explainTime(cause.time, time, tick)),
    };
  });
  return { stId, evId, name, isGlobal, rung: evidence?.isInEpisode ?? false, causes };
}

function explainCause(
  cause: CompiledCause,
  collected: CauseEvidence | null,
  time: CauseTime | null,
  seen: LastSeen,
): CauseExplanation {
  const { sId, orderId, thresholds, negate, relative, decimalAcc, needed, windowLength } = cause;
  const { matched = 0, of = 0 } = collected ?? {};
  const newest = Object.hasOwn(seen, sId) ? seen[sId] : undefined;
  const val = newest?.vals.at(-1);
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
