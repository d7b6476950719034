import type { CompiledCause } from './compile-cause.ts';
import type { CauseReader } from './readers.ts';
import type { Draft } from './draft.ts';
import type { Measurement } from '../contract/measurement.ts';
import { dropOld } from './age.ts';
import { addToBins, statisticOf } from './bins.ts';
import type { EventEvidence } from './runtime.ts';
import { withTime } from './time-kept.ts';
import { noTime } from './time-evidence.ts';
import type { CauseTime } from './time-evidence.ts';
import type { GivenValue } from './given.ts';
import { forgetLately, takeOutcome } from './take-outcome.ts';
import { comparedNumber, judge } from './thresholds.ts';

/** What a cause makes of it. `agrees` is null where nothing is compared yet. */
type Verdict = { time: CauseTime; agrees: boolean | null };

/** `collect` for an event with members of time. */
export function collectTimed(
  { event, causes: indexes }: CauseReader,
  draft: Draft,
  given: GivenValue,
  isLeaving: boolean,
): EventEvidence | null {
  let own: EventEvidence | null = null;
  let ended = false;
  for (const index of indexes) {
    const cause = event.causes[index] as CompiledCause;
    const before = own ?? draft.get(event.index);
    const known = before?.time?.causes[index] ?? noTime;
    const t = Math.max(given.moment.t, known.lastT ?? -Infinity);
    const verdict = judgeInTime(cause, known, given.val, t, before?.causes[index]?.baseline);
    if (!verdict || (isLeaving && verdict.agrees !== false)) continue;
    own ??= draft.open(event);
    dropOld(event, draft, own, t);
    const { agrees } = verdict;
    // What is too old was dropped from what is known.
    const time = { ...(own.time?.causes[index] ?? noTime), ...pick(verdict.time), lastT: t };
    if (takeOutcome({ event, index, draft, own, t, agrees }, time, given)) ended = true;
    // An outcome that came too late to count.
    dropOld(event, draft, own, t);
  }
  if (!own) return null;
  if (ended) {
    draft.endEpisode(event, own);
    forgetLately(own);
  }
  return own.time ? withTime(event, own, own.time) : own;
}

/** When an event took the measurement of that time: in one cause time never goes back. */
export function timeOf(
  { causes: indexes }: CauseReader,
  { time }: EventEvidence,
  t: number,
): number {
  const last = indexes.map((index) => time?.causes[index]?.lastT ?? t);
  return Math.max(t, ...last);
}

const pick = ({ bins, compared }: CauseTime) => ({ bins, compared });

/** Null where the cause does not evaluate such a value. */
function judgeInTime(
  cause: CompiledCause,
  known: CauseTime,
  val: Measurement['val'],
  t: number,
  baseline: number | undefined,
): Verdict | null {
  const { over = null, noneForMs = null } = cause.time ?? {};
  if (noneForMs !== null) return { time: known, agrees: false };
  if (!over) {
    const agrees = judge(cause, val, baseline);
    if (agrees === null) return null;
    if (!agrees || !cause.relative) return { time: known, agrees };
    // Of a position nothing was compared.
    const compared = typeof val === 'number' ? comparedNumber(cause, val, baseline) : undefined;
    return { time: { ...known, compared }, agrees };
  }
  if (typeof val !== 'number' || cause.reads === 'positions' || cause.reads === 'nothing')
    return null;
  const bins = addToBins(known.bins, over, t, val + 0);
  const statistic = statisticOf(bins, over, t);
  if (statistic === null) return { time: { ...known, bins }, agrees: null };
  const agrees = judge(cause, statistic, undefined);
  const compared = agrees ? comparedNumber(cause, statistic, undefined) : known.compared;
  return { time: { ...known, bins, compared }, agrees };
}
