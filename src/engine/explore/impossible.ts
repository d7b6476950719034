import type { Place } from '../../contract/values.ts';
import { alternativesOf, type CompiledCause, type LiveEvent, type Profile } from '../compile.ts';
import { canAgree, judge } from '../thresholds.ts';
import { type Bounds, classesOf } from './classes.ts';

/** Why an event can never fire, whatever is measured; null: nothing says so. */
export type Impossible = 'no-causes' | 'never-agrees' | 'exclude-each-other';

/** Judges an event by its causes alone; one with groups of causes by the last of them, if none can hold. */
export function whyImpossible(
  event: LiveEvent,
  bounds: ReadonlyMap<string, Bounds>,
): Impossible | null {
  const whys = alternativesOf(event).map((causes) => whyNeverAll(causes, bounds));
  return whys.includes(null) ? null : (whys.at(-1) ?? null);
}

function whyNeverAll(
  causes: readonly CompiledCause[],
  bounds: ReadonlyMap<string, Bounds>,
): Impossible | null {
  if (causes.length === 0) return 'no-causes';
  const measured = causes.filter(({ time }) => !time?.noneForMs);
  for (const cause of measured)
    if (cause.reads === 'nothing' || !canAgree(cause, bounds.get(cause.sId) ?? {}))
      return 'never-agrees';
  for (const [sId, alike] of Map.groupBy(measured.filter(goesByNewest), ({ sId }) => sId))
    if (alike.length > 1 && excludeEachOther(alike, bounds.get(sId))) return 'exclude-each-other';
  return null;
}

/** Whether it holds only while the newest measurement that it took agrees, which is compared as it is. */
const goesByNewest = ({ slack, relative, time }: CompiledCause) =>
  slack === 0 && !relative && !time?.over;

/** Whether no value meets all of them. Each value must concern all: else they may go by different measurements. */
function excludeEachOther(causes: readonly CompiledCause[], bounds: Bounds | undefined): boolean {
  const { values, isWhole } = classesOf(causes, bounds);
  return (
    isWhole &&
    values.every((value) => {
      const answers = causes.map((cause) => judge(cause, value, undefined));
      const areAll = answers.every((answer) => answer !== null);
      return areAll ? answers.includes(false) : answers.every((answer) => answer === null);
    })
  );
}

/** The places that moves can lead to. Events that are impossible lead nowhere. */
export function placesWithin(
  profile: Profile,
  liveAt: (place: Place) => readonly LiveEvent[],
  impossible: ReadonlyMap<LiveEvent, Impossible>,
): Map<string, Place> {
  const found = new Map<string, Place>();
  const waiting: Place[] = [profile.first];
  for (let place = waiting.pop(); place; place = waiting.pop()) {
    const key = placeKey(place);
    if (found.has(key) || !profile.purposes.get(place.puId)?.states.has(place.stId)) continue;
    found.set(key, place);
    for (const event of liveAt(place))
      if (event.target && !impossible.has(event)) waiting.push(event.target.place);
  }
  return found;
}

export const placeKey = ({ puId, stId }: Place) => `${puId}/${stId}`;
