import type { LiveEvent } from './compile-event.ts';
import type { CompiledCause } from './compile-cause.ts';
import type { CauseReader } from './readers.ts';
import type { Draft } from './draft.ts';
import { endsEpisode } from './episode.ts';
import { usedUp, withTime } from './time-kept.ts';
import { agreesWithLimits, judge } from './thresholds.ts';
import type { Measurement } from '../contract/measurement.ts';
import type { CauseEvidence, EventEvidence } from './runtime.ts';
import { addOutcome, disagreedOnce, emptyWindow, isAllDisagreed } from './window.ts';

/**
 * Adds a measurement to what the reading causes of an event have collected; `once` is what it makes of a window
 * of one where it agrees (`agreedOnce`). Gives what the event has then, or null where that is as it was: none
 * of them evaluates such a value, or it says what the ones before said. `isLeaving`: it is shown only as a
 * disagreement, and causes that it agrees with do not take it.
 */
export function collect(
  { event, causes: indexes, limits }: CauseReader,
  draft: Draft,
  val: Measurement['val'],
  once: CauseEvidence,
  isLeaving: boolean,
): EventEvidence | null {
  const base = draft.baseOf(event.index);
  let before = draft.get(event.index);
  const isInEpisode = before !== null && before.isInEpisode;
  let own: EventEvidence | null = null;
  let ended = false;
  for (let at = 0; at < indexes.length; at++) {
    const index = indexes[at] as number;
    const cause = event.causes[index] as CompiledCause;
    const collected = before?.causes[index] ?? null;
    const agrees =
      limits && typeof val === 'number'
        ? agreesWithLimits(limits, at, val)
        : judge(cause, val, collected?.baseline);
    if (agrees === null || (agrees && isLeaving)) continue;
    // In an episode no window is full of outcomes that disagreed.
    if (!agrees && (collected === disagreedOnce || isAsBefore(collected, cause, val))) continue;
    before = own ??= draft.open(event);
    if (isInEpisode && endsEpisode(draft, event, own, index, agrees)) ended = true;
    if (cause.isSingle) {
      own.holding += (agrees ? 1 : 0) - (collected?.matched ?? 0);
      own.causes[index] = agrees ? once : disagreedOnce;
    } else {
      const isOwn = collected !== null && collected !== base?.causes[index];
      const window = isOwn ? collected : draft.openCause(event, own, index);
      own.holding += collectMore(cause, window, val, agrees, once);
    }
  }
  if (own && ended) draft.endEpisode(event, own);
  return own;
}

/** Whether a measurement that disagrees leaves a cause with what it has. */
function isAsBefore(
  collected: CauseEvidence | null,
  cause: CompiledCause,
  val: Measurement['val'],
): boolean {
  return collected !== null && !beginsAt(val, cause, collected) && isAllDisagreed(collected, cause);
}

/** By how much the number of causes that hold changes. */
function collectMore(
  cause: CompiledCause,
  window: CauseEvidence,
  val: Measurement['val'],
  agrees: boolean,
  { agreed }: CauseEvidence,
): -1 | 0 | 1 {
  const held = window.matched >= cause.needed;
  if (typeof val === 'number' && beginsAt(val, cause, window)) window.baseline = val + 0;
  addOutcome(window, cause, agrees ? agreed : undefined);
  const holds = window.matched >= cause.needed;
  if (holds === held) return 0;
  return holds ? 1 : -1;
}

/** Whether a measurement fires an event that is spent at once (`isSpentAtOnce`): nothing is collected for it. */
export function isSpent({ event }: CauseReader, draft: Draft, val: Measurement['val']): boolean {
  if (draft.get(event.index) !== null) return false;
  for (const cause of event.causes) if (judge(cause, val, undefined) !== true) return false;
  return true;
}

/** Whether this is the first value that a relative cause evaluates. */
function beginsAt(
  val: Measurement['val'],
  { relative }: CompiledCause,
  { baseline }: CauseEvidence,
) {
  return relative && baseline === undefined && typeof val === 'number';
}

/** Whether every cause of the event holds. An event without causes never does. */
export function isComplete({ causes }: LiveEvent, { holding }: EventEvidence): boolean {
  return causes.length > 0 && holding === causes.length;
}

/** What is left after a firing: empty windows, the baselines, what members of time keep, and that an episode has begun. */
export function useUp(event: LiveEvent, evidence: EventEvidence): EventEvidence | null {
  const { hasEpisodes: isInEpisode, isTimed } = event;
  const { lately } = evidence;
  let isEmpty = !isInEpisode && !isTimed;
  const causes = evidence.causes.map((collected) => {
    if (collected?.baseline === undefined) return null;
    isEmpty = false;
    return emptyWindow(collected.baseline);
  });
  if (isEmpty) return null;
  const used: EventEvidence = { causes, holding: 0, isInEpisode, lately, time: null };
  return evidence.time ? withTime(event, used, usedUp(evidence.time)) : used;
}
