import type { CauseReader } from './compile.ts';
import type { MoveTarget } from './compile-event.ts';
import type { LiveEvidence } from './live-evidence.ts';
import type { Evaluated } from './outcome.ts';
import { take } from './take.ts';
import type { Given } from './take.ts';

/**
 * A measurement moves the device. The readers behind the one that moves it whose state stays are shown it, but only as
 * a disagreement: what agrees is not taken, and nothing fires. Gives what that takes (`CompiledCause`).
 */
export function leave(
  live: LiveEvidence,
  { place, entersPurpose }: MoveTarget,
  behind: CauseReader[],
  given: Given,
  outcome: Evaluated,
): number {
  let cost = 0;
  const { puId, stId } = live.place;
  if (place.puId === puId) {
    const staysInState = place.stId === stId;
    if (!entersPurpose) live.endGlobalRuns();
    for (const reader of behind) {
      const { event } = reader;
      if (!event.isGlobal && !staysInState) continue;
      const draft = live.draftOf(event);
      // Windows that are emptied next matter to an episode only.
      const isEmptied = !event.isGlobal || entersPurpose;
      if (isEmptied && !event.isTimed && !draft.get(event.index)?.isInEpisode) continue;
      cost += reader.cost;
      take(reader, draft, puId, given, outcome, true);
    }
  }
  live.enter(place, entersPurpose, outcome.arrivedTs);
  return cost;
}
