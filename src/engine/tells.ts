import type { Actions } from '../contract/actions.ts';
import type { Place } from '../contract/place.ts';
import type { Tells } from './outcome.ts';

type Told = {
  causes: { reads: string; negate: boolean; time: object | null }[];
  target: { place: Place } | null;
  stId: number;
  actions: Actions;
};

/**
 * Whom firings of an event concern. A notice is what cannot be over (all causes `isAny`), what leads back to
 * the purpose's initial state, and what says `alarm: false`.
 */
export function tellsOf(
  { causes, target, stId, actions }: Told,
  { puId, initStId }: { puId: number; initStId: number },
  notifies: boolean,
): Tells {
  if (actions.alarm === true) return notifies ? 'alarm' : 'silent-alarm';
  if (!notifies) return 'nobody';
  if (actions.alarm === false) return 'notice';
  if (causes.every(isAnything)) return 'notice';
  const leadsBack =
    stId !== initStId && target?.place.puId === puId && target.place.stId === initStId;
  return leadsBack ? 'notice' : 'alarm';
}

function isAnything({ reads, negate, time }: Told['causes'][number]): boolean {
  return reads === 'anything' && !negate && time === null;
}
