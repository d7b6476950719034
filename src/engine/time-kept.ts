import type { LiveEvent } from './compile-event.ts';
import type { CompiledCause } from './compile-cause.ts';
import type { CauseEvidence, EventEvidence } from './runtime.ts';
import type { CauseTime, EventTime } from './time-evidence.ts';
import { moveUpAll } from './move-up.ts';
import { emptyWindow, holds } from './window.ts';

/** Whether a cause of an event with members of time holds. */
export function holdsInTime(
  cause: CompiledCause,
  collected: CauseEvidence | null | undefined,
  time: CauseTime | null | undefined,
): boolean {
  if (cause.time?.noneForMs) return typeof time?.silence?.completeTs === 'number';
  if (cause.time?.forMs) return time?.run?.isComplete === true;
  return holds(cause, collected);
}

/** The evidence with what members of time keep, and the number of causes that hold then. It is changed. */
export function withTime(event: LiveEvent, own: EventEvidence, time: EventTime): EventEvidence {
  own.time = time;
  own.holding = event.causes.filter((cause, index) =>
    holdsInTime(cause, own.causes[index], time.causes[index]),
  ).length;
  return own;
}

/** After a firing: runs end, silences and bins go on. */
export function usedUp({ newestT, causes }: EventTime): EventTime {
  return { newestT, causes: causes.map((time) => time && { ...withoutOutcomes(time), run: null }) };
}

function withoutOutcomes(time: CauseTime): CauseTime {
  return { ...time, agreedT: null, compared: undefined, outcomeTs: null };
}

/**
 * What is left where a firing enters the state anew, or names its purpose: windows, baselines and bins are empty,
 * episodes, runs and silences go on. Null where nothing is.
 */
export function leftAtReentry(event: LiveEvent, evidence: EventEvidence): EventEvidence | null {
  const { isInEpisode, lately, time } = evidence;
  if (!isInEpisode && !time) return null;
  // What the next draft begins with is whole.
  if (lately) moveUpAll(lately, event.causes);
  const causes = evidence.causes.map((collected, index) =>
    collected && time?.causes[index]?.run ? withoutBaseline(collected) : null,
  );
  const left: EventEvidence = { causes, holding: 0, isInEpisode, lately, time: null };
  if (!time) return left;
  const { newestT } = time;
  return withTime(event, left, { newestT, causes: time.causes.map((it) => it && anew(it)) });
}

function anew(time: CauseTime): CauseTime {
  return { ...(time.run ? time : withoutOutcomes(time)), bins: null };
}

/** Of a run: its outcomes are counted, and kept in no window. */
function withoutBaseline({ of, matched, agreed }: CauseEvidence): CauseEvidence {
  return { ...emptyWindow(undefined), of, matched, agreed };
}
