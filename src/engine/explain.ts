import { z } from 'zod';
import type { LiveEvent } from './compile-event.ts';
import type { Profile } from './compile.ts';
import { CauseExplanation, explainCause } from './explain-cause.ts';
import { explainTime } from './explain-time.ts';
import type { LastSeen } from './last-seen.ts';
import type { Listening } from './listening.ts';
import type { Runtime } from './runtime.ts';
import { ticksOf } from './ticks.ts';
import type { KnownListening } from './ticks.ts';

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
export type AskedAt = { nowTs: number; listening?: Listening | undefined };

/**
 * Says for each live event, in the order in which they are tried, what its causes have and lack. Without `asked`
 * a gap in listening that lasts is over.
 */
export function explain(
  profile: Profile,
  runtime: Runtime,
  seen: LastSeen,
  { nowTs, listening = { gaps: [] } }: AskedAt = { nowTs: -Infinity },
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
  known: KnownListening,
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
