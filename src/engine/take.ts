import { collect } from './collect-evidence.ts';
import { collectTimed } from './collect-timed.ts';
import type { CauseReader } from './compile.ts';
import type { Draft } from './draft.ts';
import type { Measurement } from '../contract/measurement.ts';
import type { Evaluated, Moment } from './outcome.ts';
import type { Agreed, CauseEvidence } from './runtime.ts';

/** A measurement, and what it makes of a window of one where it agrees: all causes that it meets have this object. */
export type Given = Pick<Measurement, 'val'> & { moment: Moment; once: CauseEvidence };

/**
 * An event takes a measurement, or only what disagrees (`isLeaving`): `collect`. Gives when, which may be later than
 * its moment; null where what the event has collected stays as it was. Says whether that ended an episode.
 */
export function take(
  reader: CauseReader,
  draft: Draft,
  puId: number,
  { val, moment, once }: Given,
  outcome: Evaluated,
  isLeaving: boolean,
): number | null {
  const { event } = reader;
  const { index, hasEpisodes, stId, evId } = event;
  const wasInEpisode = hasEpisodes && draft.get(index)?.isInEpisode === true;
  let takenT: number | null = null;
  if (event.isTimed) {
    const agreed = once.agreed as Agreed;
    takenT = collectTimed(reader, draft, { val, agreed, moment }, isLeaving);
  } else if (collect(reader, draft, val, once, isLeaving)) {
    takenT = moment.t;
  }
  if (wasInEpisode && !draft.get(index)?.isInEpisode) outcome.ended.push({ puId, stId, evId });
  return takenT;
}
