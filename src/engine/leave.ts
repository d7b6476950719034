import { collect } from './collect-evidence.ts';
import { collectTimed } from './collect-timed.ts';
import type { CauseReader } from './readers.ts';
import type { GivenValue } from './given.ts';
import type { LiveEvidence } from './live-evidence.ts';
import type { Evaluated } from './outcome.ts';

/** Readers in the order in which they are tried: the state's own, then global ones; the one of `at` moves the device. */
export type Mover = { own: CauseReader[]; global: CauseReader[]; at: number };

/**
 * A measurement moves the device. The readers behind the one that moves it whose state stays are shown it, but only as
 * a disagreement: what agrees is not taken, and nothing fires. Gives what that takes (`CompiledCause`).
 */
export function leave(
  live: LiveEvidence,
  { own, global, at }: Mover,
  given: GivenValue,
  outcome: Evaluated,
): number {
  const { puId, stId } = live.place;
  const target = (own[at] ?? global[at - own.length])?.event.target;
  if (!target) return 0;
  const { place, entersPurpose } = target;
  let cost = 0;
  if (place.puId === puId) {
    if (!entersPurpose) live.endGlobalDeferred();
    const isKept = { local: place.stId === stId, windows: !entersPurpose };
    for (let index = at + 1; index < own.length; index++)
      cost += show(own[index] as CauseReader, live, isKept, given);
    for (let index = Math.max(0, at + 1 - own.length); index < global.length; index++) {
      const reader = global[index] as CauseReader;
      if (reader.event.stId !== stId) cost += show(reader, live, isKept, given);
    }
  }
  if (live.ended.length > 0) live.tellEnded(outcome);
  live.enter(place, entersPurpose, outcome.arrivedTs);
  return cost;
}

/** `isKept`: whether the state's own events stay, and the windows of global ones. */
function show(
  reader: CauseReader,
  live: LiveEvidence,
  isKept: { local: boolean; windows: boolean },
  given: GivenValue,
): number {
  const { event } = reader;
  if (!event.isGlobal && !isKept.local) return 0;
  const draft = live.draftOf(event);
  // Windows that are emptied next matter to an episode only.
  const isEmptied = !event.isGlobal || !isKept.windows;
  if (isEmptied && !event.isTimed && !draft.get(event.index)?.isInEpisode) return 0;
  if (event.isTimed) collectTimed(reader, draft, given, true);
  else collect(reader, draft, given.val, given.once, true);
  return reader.cost;
}
