import { useState } from 'preact/hooks';
import { useQuery } from '../../api/cache.ts';
import { getDevice } from '../../api/devices.ts';
import { asLeft } from '../../app/router.ts';
import { BackLink, Link } from '../../parts/link.tsx';
import { Answered, Empty } from '../../parts/panel.tsx';
import { Status } from '../../parts/status.tsx';
import { formatNumber, formatTime } from '../../text/format.ts';
import { map as de } from '../../text/de/map.ts';
import { map as en } from '../../text/en/map.ts';
import { count, t, textsOf } from '../../text/t.ts';
import { MapFrame } from '../device/chart/map.tsx';
import { listPlaced, type Placed, type Spot, spotsOf } from './spots.ts';

const text = textsOf(en, de);
const several = (stem: 'map.devices' | 'map.here', number: number) =>
  text(`${stem}.${number === 1 ? 'one' : 'other'}`, { count: formatNumber(number) });

const everyMs = 60_000;

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

function FleetMap({ places }: { places: readonly Placed[] }) {
  const [chosen, setChosen] = useState<readonly Placed[]>([]);
  return (
    <>
      <MapFrame
        label={several('map.devices', places.length)}
        all={places}
        whole={text('map.whole')}
        over={(projection, size, show) =>
          spotsOf(places, (place) => projection([place.long, place.lat]), size).map((spot) => (
            <SpotButton
              key={spot.places[0]?.deviceAuthUuid}
              spot={spot}
              isChosen={spot.places.every((place) => chosen.includes(place))}
              onChoose={() => {
                setChosen(spot.places);
                if (spot.places.length > 1) show(spot.places);
              }}
            />
          ))
        }
      />
      <p class="fine">{several('map.devices', places.length)}</p>
      {chosen.length > 0 && <Chosen places={chosen} />}
    </>
  );
}

type SpotProps = { spot: Spot; isChosen: boolean; onChoose: () => void };

function SpotButton({ spot: { x, y, places }, isChosen, onChoose }: SpotProps) {
  return (
    <button
      type="button"
      class="map-spot"
      style={{ left: `${x}px`, top: `${y}px` }}
      aria-pressed={isChosen}
      aria-label={several('map.here', places.length)}
      onClick={onChoose}
    >
      {places.length > 1 && formatNumber(places.length)}
    </button>
  );
}

const mostListed = 20;

/** The devices of a place that was chosen, with their names and states. */
function Chosen({ places }: { places: readonly Placed[] }) {
  const rest = places.length - mostListed;
  return (
    <div role="status">
      <ul class="map-list">
        {places.slice(0, mostListed).map((place) => (
          <ChosenDevice key={place.deviceAuthUuid} {...place} />
        ))}
      </ul>
      {rest > 0 && <p class="fine">{count('fleet.more', rest)}</p>}
    </div>
  );
}

function ChosenDevice({ deviceAuthUuid: uuid, ts }: Placed) {
  const { data } = useQuery(`device/${uuid}`, (signal) => getDevice(uuid, signal));
  return (
    <li>
      <Link to={`devices/${uuid}`} class="link">
        {data ? data.device.name.trim() || t('fleet.unnamed') : '…'}
      </Link>
      {data && <Status {...data.device} />}
      <span class="fine">{formatTime(ts)}</span>
    </li>
  );
}
