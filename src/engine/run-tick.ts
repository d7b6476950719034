import { dropOld } from './age.ts';
import type { LiveEvent } from './compile-event.ts';
import type { Draft } from './draft.ts';
import type { EventEvidence } from './runtime.ts';
import type { Tick } from './ticks.ts';
import { withTime } from './time-kept.ts';
import type { CauseTime } from './time-evidence.ts';

/**
 * A cause comes to hold by its tick, unless what it held for has become too old by then. Gives what its event has
 * then, which is the draft's own, and how old the newest measurement of the cause was at its arrival.
 */
export function runTick(
  { event, index, t }: Tick,
  draft: Draft,
): { evidence: EventEvidence; ageMs: number } {
  const own = draft.open(event);
  dropOld(event, draft, own, t);
  const { newestT = null, causes = [] } = own.time ?? {};
  const completed = causes.map((time, at) => (at === index && time ? complete(time, t) : time));
  const evidence = withTime(event, own, { newestT, causes: completed });
  return { evidence, ageMs: causes[index]?.run?.newestAgeMs ?? 0 };
}

function complete(time: CauseTime, t: number): CauseTime {
  if (time.run) return { ...time, run: { ...time.run, isComplete: true } };
  return time.silence ? { ...time, silence: { ...time.silence, completeTs: t } } : time;
}

/**
 * The time of a firing by a tick: when it was complete, or when the newest measurement that agreed was taken, if later; and
 * when it fires by the service's clock. A silence has one time for both, when it was complete.
 */
export function firingTime(
  { event, index, t, ts: dueTs }: Tick,
  { causes, time }: EventEvidence,
): { ts: number; nowTs: number } {
  if (hasSilence(event, index)) return { ts: t, nowTs: t };
  const agreed = causes.map((collected, at) =>
    collected?.agreed ? (time?.causes[at]?.agreedT ?? t) : t,
  );
  return { ts: Math.max(t, ...agreed), nowTs: dueTs };
}

const hasSilence = ({ causes }: LiveEvent, index: number) =>
  (causes[index]?.time?.noneForMs ?? null) !== null;
