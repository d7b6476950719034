import type { Position } from '../contract/measurement.ts';
import type { Purpose, PurposePath } from '../contract/purpose.ts';
import { warning, type Warning } from '../contract/warnings.ts';
import { shorterWay } from './arithmetic.ts';

/** Polygons that go round a pole: latitude and longitude are a plane here, which has no poles. */
export function warnOfPolygons(purposes: readonly Purpose[], pathOf: PurposePath): Warning[] {
  return [...listPolygons(purposes, pathOf)]
    .filter(({ polygon }) => isRoundPole(polygon))
    .map(({ path }) =>
      warning(
        'polygon-round-pole',
        path,
        'the polygon goes round a pole, which is not supported: what counts as inside is not what it encloses on the globe',
      ),
    );
}

/** Whether its longitudes, each by the shorter way from the one before, add up to a whole turn. */
function isRoundPole(polygon: readonly Position[]): boolean {
  let turned = 0;
  let from = polygon.at(-1);
  for (const to of polygon) {
    turned += shorterWay(to.long - (from?.long ?? to.long));
    from = to;
  }
  // A whole turn or none, but for rounding.
  return Math.abs(turned) > 180;
}

function* listPolygons(purposes: readonly Purpose[], pathOf: PurposePath) {
  for (const [index, { states }] of purposes.entries())
    for (const [s, { events }] of states.entries())
      for (const [e, { causes }] of events.entries())
        for (const [c, { thresholds }] of causes.entries()) {
          const polygon = thresholds.isInsideGeo;
          const path = `${pathOf(index)}/states/${s}/events/${e}/causes/${c}/thresholds/isInsideGeo`;
          if (polygon) yield { polygon, path };
        }
}
