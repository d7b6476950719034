import { t } from '../../../text/t.ts';
import type { CurrentProfile } from '../tab.ts';
import type { Position } from './places.ts';

/** An area of the installed profile, with the event that it is of. */
export type Area = { name: string; points: readonly Position[] };

/** The areas that positions of a sense are compared with. */
export function areasOf(sId: string, profile: CurrentProfile | null): Area[] {
  const events = (profile?.purposes ?? []).flatMap(({ states }) =>
    states.flatMap((state) => state.events),
  );
  return events.flatMap(({ name: own, evId, causes }) => {
    const name = own || t('event.unknown', { id: evId });
    return causes.flatMap(({ sId: of, thresholds: { isInsideGeo } }) =>
      of === sId && isInsideGeo ? [{ name, points: isInsideGeo }] : [],
    );
  });
}
