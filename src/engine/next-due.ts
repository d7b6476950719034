import type { LiveEvent } from './compile-event.ts';
import type { Profile } from './compile.ts';
import type { Listening } from './listening.ts';
import type { Runtime } from './runtime.ts';
import { ticksOf } from './ticks.ts';

/**
 * When the next tick of a device is due, ms; null: nothing waits. `earliestTs`: had its connector always listened, which
 * is never later. `cost`: what it took to find out, in causes that judge a measurement.
 */
export type NextDue = { ts: number | null; earliestTs: number | null; cost: number };

const alwaysListening: Listening = { gaps: [] };

/** Looks at what waits as it is kept: `Evaluator` says the same of what it works on. */
export function findNextDue(
  profile: Profile,
  runtime: Runtime,
  listening: Listening = alwaysListening,
): NextDue {
  const events = waitingAt(profile, runtime);
  const earliestTs = earliestOf(events, runtime, alwaysListening);
  const hasGaps = earliestTs !== null && listening.gaps.length > 0;
  const ts = hasGaps ? earliestOf(events, runtime, listening) : earliestTs;
  return { ts, earliestTs, cost: events.reduce((sum, { causes }) => sum + causes.length, 0) };
}

function earliestOf(events: LiveEvent[], runtime: Runtime, listening: Listening): number | null {
  const known = { listening, nowTs: -Infinity };
  let next: number | null = null;
  for (const event of events) {
    const evidence = (event.isGlobal ? runtime.global : runtime.local)[event.index] ?? null;
    for (const { ts } of ticksOf(event, evidence, known)) if (next === null || ts < next) next = ts;
  }
  return next;
}

/** Live events that may wait for a tick. */
function waitingAt(profile: Profile, { puId, stId }: Runtime): LiveEvent[] {
  const purpose = profile.purposes.get(puId);
  const own = purpose?.states.get(stId)?.timed.ticking ?? [];
  const global = purpose?.globalTimed.ticking ?? [];
  return global.length === 0 ? own : [...own, ...global.filter((event) => event.stId !== stId)];
}
