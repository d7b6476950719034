import { z } from 'zod';
import type { CompiledCause, LiveEvent } from './compile-event.ts';
import type { Profile } from './compile.ts';
import { comparedOf, senseOf } from './build-event.ts';
import { Position } from '../contract/measurement.ts';
import { Thresholds } from '../contract/purpose.ts';
import type { Agreed, CauseEvidence, Runtime } from './runtime.ts';
import type { LastSeen } from './last-seen.ts';

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
    .optional(),
  /** Members of time, as in the purpose. */
  forMs: z.int().optional(),
  noneForMs: z.int().optional(),
  maxAgeMs: z.int().optional(),
  over: z.object({ ms: z.int(), stat: z.enum(['avg', 'sum', 'delta']) }).optional(),
  /** When the run of `forMs` began, by the measurement's time, or the silence of `noneForMs`; absent where there is none. */
  sinceTs: z.int().optional(),
  /** When it comes to hold, if nothing happens before that. */
  dueTs: z.int().optional(),
  /** What `over` compares at the newest measurement; absent before half of its time has passed: `collectedMs` has. */
  statistic: z.number().optional(),
  collectedMs: z.int().optional(),
  /** The sense's newest measurement; older ones, and the same again, are not evaluated. */
  seen: z.object({ val: z.union([z.number(), Position]), ts: z.int() }).optional(),
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

/** Says for each live event, in the order in which they are tried, what its causes have and lack. */
export function explain(profile: Profile, runtime: Runtime, seen: LastSeen): Explanation {
  const { puId, stId } = runtime;
  const purpose = profile.purposes.get(puId);
  const own = purpose?.states.get(stId)?.events ?? [];
  const global = purpose?.globalEvents.filter((event) => event.stId !== stId) ?? [];
  const events = [...own, ...global].map((event) => explainEvent(event, runtime, seen));
  return { pId: profile.pId, puId, stId, events };
}

function explainEvent(event: LiveEvent, runtime: Runtime, seen: LastSeen): EventExplanation {
  const { stId, evId, name, isGlobal } = event;
  const evidence = (isGlobal ? runtime.global : runtime.local)[event.index];
  const causes = event.causes.map((cause, index) =>
    explainCause(cause, evidence?.causes[index] ?? null, seen),
  );
  return { stId, evId, name, isGlobal, rung: evidence?.isInEpisode ?? false, causes };
}

function explainCause(
  cause: CompiledCause,
  collected: CauseEvidence | null,
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
    missing: Math.max(0, needed - matched),
    holds: matched >= needed,
    ...(decimalAcc === null ? {} : { decimalAcc }),
    ...(collected?.baseline === undefined ? {} : { baseline: collected.baseline }),
    ...(collected?.agreed ? { agreed: agreedOf(cause, collected, collected.agreed) } : {}),
    ...(newest && val !== undefined ? { seen: { val, ts: newest.ts } } : {}),
  };
}

function agreedOf(cause: CompiledCause, collected: CauseEvidence, agreed: Agreed) {
  const { sId: _sId, ...told } = senseOf(cause, agreed);
  const compared = comparedOf(cause, collected);
  return compared === undefined ? told : { ...told, compared };
}
