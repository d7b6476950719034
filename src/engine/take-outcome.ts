import type { LiveEvent } from './compile-event.ts';
import type { CompiledCause } from './compile-cause.ts';
import type { Draft } from './draft.ts';
import { endsEpisode } from './episode.ts';
import type { GivenValue } from './given.ts';
import { goOn } from './run.ts';
import type { Agreed, CauseEvidence, EventEvidence } from './runtime.ts';
import type { CauseTime } from './time-evidence.ts';
import { addOutcome } from './window.ts';

/** Which cause takes it, and what it makes of it; `agrees` is null where nothing is compared yet. */
type Found = {
  event: LiveEvent;
  index: number;
  draft: Draft;
  own: EventEvidence;
  t: number;
  agrees: boolean | null;
};

/** A cause takes a measurement that it evaluates. Whether that ends the event's episode; `own` is changed. */
export function takeOutcome(found: Found, time: CauseTime, given: GivenValue): boolean {
  const { event, index, draft, own, agrees } = found;
  const cause = event.causes[index] as CompiledCause;
  const taking = agrees === null ? time : takeInto(found, cause, time, given);
  const lately =
    own.isInEpisode && agrees !== null && isAgedLenient(cause)
      ? [...(time.lately ?? []), { t: found.t, agrees }].slice(-cause.windowLength)
      : taking.lately;
  setTime(own, index, { ...taking, lately });
  if (!own.isInEpisode || agrees === null) return false;
  if (!lately) return endsEpisode(draft, event, own, index, agrees);
  return lately.filter((outcome) => !outcome.agrees).length > cause.slack;
}

/** Of causes with `maxAgeMs`. */
export function forgetLately(own: EventEvidence): void {
  if (!own.time) return;
  const causes = own.time.causes.map((time) => (time?.lately ? { ...time, lately: null } : time));
  own.time = { ...own.time, causes };
}

/** Outcomes that are too old count for an episode neither. */
function isAgedLenient({ slack, time }: CompiledCause): boolean {
  return slack > 0 && (time?.maxAgeMs ?? null) !== null;
}

function takeInto(
  { event, index, draft, own, t, agrees }: Found,
  cause: CompiledCause,
  time: CauseTime,
  { val, moment, once: { agreed } }: GivenValue,
): CauseTime {
  const { forMs = null, noneForMs = null, maxAgeMs = null } = cause.time ?? {};
  if (noneForMs !== null) {
    return { ...time, silence: { sinceTs: moment.arrivedTs, completeTs: null } };
  }
  const window = draft.openCause(event, own, index);
  if (cause.relative && typeof val === 'number') window.baseline ??= val + 0;
  const agreedT = agrees ? t : time.agreedT;
  if (forMs !== null) {
    countInRun(window, agrees ? agreed : undefined);
    const asked = { forMs, needed: cause.needed };
    const run = agrees ? goOn(time.run, asked, window.of, t, moment) : null;
    return { ...time, agreedT, run };
  }
  addOutcome(window, cause, agrees ? agreed : undefined);
  if (maxAgeMs === null) return { ...time, agreedT };
  const outcomeTs = [...(time.outcomeTs ?? []), t].slice(-cause.windowLength);
  return { ...time, agreedT, outcomeTs };
}

/** The outcomes of a run are counted only: all of them agreed. */
function countInRun(window: CauseEvidence, agreed: Agreed | undefined): void {
  const count = agreed ? window.of + 1 : 0;
  window.of = count;
  window.matched = count;
  window.agreed = agreed;
}

function setTime(own: EventEvidence, index: number, time: CauseTime): void {
  const { newestT = null, causes = [] } = own.time ?? {};
  own.time = { newestT, causes: causes.map((known, at) => (at === index ? time : known)) };
}
