import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useQuery } from '../../../api/cache.ts';
import { listNewest, useKnownLatest } from '../../../api/measurements.ts';
import type { Sense } from '../../../api/types.ts';
import { now } from '../../../app/now.ts';
import { formatNumber, formatTime, formatValue } from '../../../text/format.ts';
import { t } from '../../../text/t.ts';
import { nameOfSense } from '../../../api/devices.ts';
import type { CurrentProfile } from '../tab.ts';
import { areasOf, type Located, placesOf, type Position } from './places.ts';
import type { MapProps } from './map.tsx';
import { type Range, readRange } from './series.ts';

type PositionsProps = {
  uuid: string;
  range: Range;
  senses: ReadonlyMap<string, Sense>;
  profile: CurrentProfile | null;
};

/** Where the device was in the range, and where it is now: a map for each sense that measures positions. */
export function Positions({ uuid, ...rest }: PositionsProps) {
  const latest = useKnownLatest(uuid);
  const newest = placesOf(latest);
  return newest.map((place) => <SensePositions key={place.sId} {...rest} {...{ uuid, place }} />);
}

const everyMs = 60_000;

type SensePositionsProps = PositionsProps & { place: Located & { sId: string } };

function SensePositions({ uuid, range, senses, profile, place }: SensePositionsProps) {
  const { sId } = place;
  const key = `positions/${uuid}/${sId}/${range.name ?? `${range.start}-${range.end}`}`;
  const load = (signal: AbortSignal) => {
    const { start, end } = readRange(now());
    const asked = { sId, start: Math.floor(start), end: Math.ceil(end) };
    return listNewest(uuid, asked, signal);
  };
  const { data } = useQuery(key, load, range.name === null ? {} : { everyMs });
  const Map = useMap();
  const track = placesOf(data?.values ?? []);
  const name = nameOfSense(sId, senses.get(sId));
  const said = t('chart.mapOf', {
    name,
    number: formatNumber(track.length),
    place: formatValue({ lat: place.lat, long: place.long }),
    time: formatTime(place.ts),
  });
  return (
    <figure class="chart">
      <figcaption>{name}</figcaption>
      {Map ? (
        <Map label={said} track={track} newest={place} areas={areasOf(sId, profile)} />
      ) : (
        <p class="map map-loading fine">{t('chart.loading')}</p>
      )}
      <p class="fine">
        {said} <OpenInMaps {...place} />{' '}
        {data?.isCut && t('chart.mapCut', { most: formatNumber(track.length) })}
      </p>
    </figure>
  );
}

/** Links to the map of the phone or computer, and to one on the web. */
function OpenInMaps({ lat, long }: Position) {
  return (
    <>
      <a class="link" href={`geo:${lat},${long}`}>
        {t('chart.openInMaps')}
      </a>
      {' · '}
      <a
        class="link"
        target="_blank"
        rel="noreferrer"
        href={`https://www.openstreetmap.org/?mlat=${lat}&mlon=${long}#map=16/${lat}/${long}`}
      >
        {t('chart.openStreetMap')}
      </a>
    </>
  );
}

/** Loads the map's script and the continents' outlines only when there is a position to show. */
function useMap(): ComponentType<MapProps> | null {
  const [loaded, setLoaded] = useState<{ Map: ComponentType<MapProps> } | null>(null);
  useEffect(() => {
    let isGone = false;
    // Without the map, the text below still says where the device is.
    import('./map.tsx').then(
      ({ PlaceMap }) => !isGone && setLoaded({ Map: PlaceMap }),
      () => undefined,
    );
    return () => void (isGone = true);
  }, []);
  return loaded?.Map ?? null;
}
