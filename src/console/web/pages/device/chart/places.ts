import type { MeasurementView } from '../../../api/types.ts';

export type Position = { lat: number; long: number };
export type Located = Position & { ts: number };

/** Those of the values that are positions. */
export function placesOf(values: readonly MeasurementView[]): (Located & { sId: string })[] {
  return values.flatMap(({ sId, val, ts }) =>
    typeof val === 'number' ? [] : [{ sId, ts, lat: val.lat, long: val.long }],
  );
}
