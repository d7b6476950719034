import type { Actions } from '../contract/actions.ts';
import type { Place } from '../contract/place.ts';
import type { Purpose } from '../contract/purpose.ts';

/** Where a firing moves the device, and whether that enters a purpose or only a state of this one. */
export type MoveTarget = { place: Place; entersPurpose: boolean };

/** `initStIds`: where each purpose of the profile begins, by puId. */
export function targetOf(
  purpose: Purpose,
  { engine }: Actions,
  initStIds: ReadonlyMap<number, number>,
): MoveTarget | null {
  const { gotoPuId, gotoStId } = engine ?? {};
  if (gotoPuId === undefined) {
    if (gotoStId === undefined) return null;
    return { place: { puId: purpose.puId, stId: gotoStId }, entersPurpose: false };
  }
  const stId = gotoStId ?? initStIds.get(gotoPuId);
  if (stId === undefined) return null;
  return { place: { puId: gotoPuId, stId }, entersPurpose: true };
}
