import { useEffect, useRef, useState } from 'preact/hooks';
import { reload, useQuery } from '../../api/cache.ts';
import { getDevice, listFirst } from '../../api/devices.ts';
import { useLatest } from '../../api/measurements.ts';
import type { LatestView } from '../../api/types.ts';
import { asLeft } from '../../app/router.ts';
import { onStream } from '../../app/stream.ts';
import { throttle } from '../../app/throttle.ts';
import { BackLink, Link } from '../../parts/link.tsx';
import { Answered, Empty } from '../../parts/panel.tsx';
import { rhythmOf } from '../../parts/presence.ts';
import { Status } from '../../parts/status.tsx';
import { formatNumber, formatTime } from '../../text/format.ts';
import { map as de } from '../../text/de/map.ts';
import { map as en } from '../../text/en/map.ts';
import { count, t, textsOf } from '../../text/t.ts';
import { MapFrame } from '../device/chart/map.tsx';
import { listPlaced, type Placed, type Spot, spotsOf } from './spots.ts';

const text = textsOf(en, de);
const countPlaced = (number: number) =>
  text(`map.devices.${number === 1 ? 'one' : 'other'}`, { count: formatNumber(number) });

const everyMs = 60_000;
/** However many alarms change. */
const pauseMs = 5_000;

/** Where the devices are, by the newest position of each. */
export function MapPage() {
  const query = useQuery('positions', (signal) => listPlaced(signal), { everyMs });
  return (
    <>
      <BackLink to={asLeft('')}>{t('device.back')}</BackLink>
      <div class="head">
        <h1>{t('fleet.map')}</h1>
      </div>
      <section class="panel" aria-label={t('fleet.map')}>
        <Answered query={query} lines={6}>
          {({ places, isCut }) =>
            places.length === 0 ? (
              <Empty icon="devices" title={text('map.none')} hint={text('map.noneHint')} />
            ) : (
              <>
                <FleetMap places={places} />
                {isCut && <p class="fine">{text('map.cut')}</p>}
              </>
            )
          }
        </Answered>
      </section>
    </>
  );
}

/** What the devices are called, and which of them are in alarm, by uuid. */
function useDevices(): { names: ReadonlyMap<string, string>; inAlarm: ReadonlySet<string> } {
  const { data: all = [] } = useQuery('map/devices', (signal) => listFirst({}, signal));
  const { data: inAlarm = [] } = useQuery(
    'map/alarms',
    (signal) => listFirst({ alarm: 'open' }, signal),
    { everyMs },
  );
  useEffect(() => {
    const again = throttle(() => reload('map/alarms'), pauseMs);
    return onStream(({ kind }) => {
      if (kind === 'alarm') again();
    });
  }, []);
  return {
    names: new Map(all.map(({ uuid, name }) => [uuid, name.trim() || t('fleet.unnamed')])),
    inAlarm: new Set(inAlarm.map(({ uuid }) => uuid)),
  };
}

function FleetMap({ places }: { places: readonly Placed[] }) {
  const { names, inAlarm } = useDevices();
  /** By uuid, because each answer has other objects for the same devices. */
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const show = useRef((_positions: readonly Placed[]) => {});
  const shown = places.filter(({ deviceAuthUuid }) => chosen.includes(deviceAuthUuid));
  return (
    <>
      <MapFrame
        label={countPlaced(places.length)}
        all={places}
        whole={text('map.whole')}
        height={460}
        over={(projection, size, showOnMap) => {
          show.current = showOnMap;
          return spotsOf(places, (place) => projection([place.long, place.lat]), size).map(
            (spot) => (
              <SpotButton
                key={spot.places[0]?.deviceAuthUuid}
                spot={spot}
                names={names}
                isBad={spot.places.some(({ deviceAuthUuid }) => inAlarm.has(deviceAuthUuid))}
                isChosen={spot.places.every((place) => shown.includes(place))}
                onChoose={() => {
                  setChosen(spot.places.map(({ deviceAuthUuid }) => deviceAuthUuid));
                  if (spot.places.length > 1) showOnMap(spot.places);
                }}
              />
            ),
          );
        }}
      />
      <p class="fine">{countPlaced(places.length)}</p>
      {shown.length > 0 && <Chosen places={shown} onShow={(place) => show.current([place])} />}
    </>
  );
}

type SpotProps = {
  spot: Spot;
  names: ReadonlyMap<string, string>;
  /** A device here is in alarm. */
  isBad: boolean;
  isChosen: boolean;
  onChoose: () => void;
};

function SpotButton({ spot: { x, y, places }, names, isBad, isChosen, onChoose }: SpotProps) {
  const [first, ...more] = places;
  const what =
    more.length > 0
      ? text('map.here', { count: formatNumber(places.length) })
      : (names.get(first?.deviceAuthUuid ?? '') ?? t('fleet.unnamed'));
  const label = isBad ? text('map.inAlarm', { what }) : what;
  return (
    <button
      type="button"
      class={isBad ? 'map-spot map-spot-bad' : 'map-spot'}
      style={{ left: `${x}px`, top: `${y}px` }}
      aria-pressed={isChosen}
      aria-label={label}
      title={label}
      onClick={onChoose}
    >
      {more.length > 0 && formatNumber(places.length)}
      {isBad && '!'}
    </button>
  );
}

const mostListed = 20;

type ChosenProps = { places: readonly Placed[]; onShow: (place: Placed) => void };

/** The devices of a place that was chosen, with their names and states. */
function Chosen({ places, onShow }: ChosenProps) {
  const listed = places.slice(0, mostListed);
  const { data: latest } = useLatest(listed.map(({ deviceAuthUuid }) => deviceAuthUuid));
  const rest = places.length - mostListed;
  return (
    <div role="status">
      <ul class="map-list">
        {listed.map((place) => (
          <ChosenDevice
            key={place.deviceAuthUuid}
            place={place}
            latest={latest?.filter(({ deviceAuthUuid }) => deviceAuthUuid === place.deviceAuthUuid)}
            onShow={() => onShow(place)}
          />
        ))}
      </ul>
      {rest > 0 && <p class="fine">{count('fleet.more', rest)}</p>}
    </div>
  );
}

type ChosenDeviceProps = {
  place: Placed;
  /** Its newest values; undefined until they are known. */
  latest: readonly LatestView[] | undefined;
  onShow: () => void;
};

function ChosenDevice({ place, latest, onShow }: ChosenDeviceProps) {
  const { deviceAuthUuid: uuid, ts } = place;
  const { data } = useQuery(`device/${uuid}`, (signal) => getDevice(uuid, signal));
  return (
    <li>
      <Link to={`devices/${uuid}`} class="link">
        {data ? data.device.name.trim() || t('fleet.unnamed') : '…'}
      </Link>
      {data && <Status {...data.device} {...rhythmOf(latest)} />}
      <span class="fine">{formatTime(ts)}</span>
      <button type="button" class="link" onClick={onShow}>
        {t('chart.zoomIn')}
      </button>
    </li>
  );
}
