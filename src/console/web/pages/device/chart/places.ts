import type { MeasurementView } from '../../../api/types.ts';
import { t } from '../../../text/t.ts';
import type { CurrentProfile } from '../tab.ts';

export type Position = { lat: number; long: number };
export type Located = Position & { ts: number };

/** The values that are positions. */
export function placesOf(values: readonly MeasurementView[]): (Located & { sId: string })[] {
  return values.flatMap(({ sId, val, ts }) =>
    typeof val === 'number' ? [] : [{ sId, ts, lat: val.lat, long: val.long }],
  );
}

/** An area of the installed profile, with the event that uses it. */
export type Area = { name: string; points: readonly Position[] };

/** The areas that positions of a sense are compared with. */
export function areasOf(sId: string, profile: CurrentProfile | null): Area[] {
  const events = (profile?.purposes ?? []).flatMap(({ states }) =>
    states.flatMap((state) => state.events),
  );
  return events.flatMap(({ name: own, evId, causes, anyOf }) => {
    const name = own || t('event.unknown', { id: evId });
    return (anyOf?.flat() ?? causes).flatMap(({ sId: of, thresholds: { isInsideGeo } }) =>
      of === sId && isInsideGeo ? [{ name, points: isInsideGeo }] : [],
    );
  });
}
