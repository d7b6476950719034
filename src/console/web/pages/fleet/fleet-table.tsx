import type { ListedDevice } from '../../api/devices.ts';
import { useLatest } from '../../api/measurements.ts';
import type { LatestView } from '../../api/types.ts';
import { queryOf, setQuery } from '../../app/router.ts';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { Ago, Status } from '../../parts/status.tsx';
import { formatAgo, formatValue } from '../../text/format.ts';
import { t } from '../../text/t.ts';

/** A page of devices; below 700 px each is a row of two lines. */
export function FleetTable({ devices }: { devices: readonly ListedDevice[] }) {
  const { data: latest = [] } = useLatest(devices.map(({ uuid }) => uuid));
  const values = Map.groupBy(latest, ({ deviceAuthUuid }) => deviceAuthUuid);
  return (
    <table class="table fleet">
      <thead>
        <tr>
          <Sortable column="name" label={t('fleet.name')} />
          <th scope="col">{t('fleet.state')}</th>
          <th scope="col">{t('fleet.values')}</th>
          <Sortable column="lastSeenTs" label={t('fleet.lastSeen')} />
          <th scope="col">{t('fleet.labels')}</th>
        </tr>
      </thead>
      <tbody>
        {devices.map((device) => (
          <Row key={device.uuid} device={device} values={values.get(device.uuid) ?? []} />
        ))}
      </tbody>
    </table>
  );
}

type RowProps = { device: ListedDevice; values: LatestView[] };

function Row({ device, values }: RowProps) {
  const { uuid, name, serial, labels, lastSeenTs, alarmSinceTs } = device;
  return (
    <tr>
      <th scope="row" class="fleet-name">
        <Link to={`devices/${uuid}`} class="row-link">
          {name || t('fleet.unnamed')}
        </Link>
        {serial && <span class="fine">{serial}</span>}
      </th>
      <td class="fleet-state">
        {alarmSinceTs !== undefined ? (
          <span class="status status-alarm">
            <Icon name="warn" />
            {t('fleet.alarm', { time: formatAgo(alarmSinceTs) })}
          </span>
        ) : (
          <Status {...device} />
        )}
      </td>
      <td class="fleet-values">
        {values.slice(0, 3).map(({ sId, val, name, unit, decimals }) => (
          <span key={sId} class="fleet-value" title={name ?? sId}>
            {unit === undefined && <span class="fine">{name ?? sId} </span>}
            {formatValue(val, { unit, decimals })}
          </span>
        ))}
      </td>
      <td class="fleet-seen">{lastSeenTs !== null && <Ago ts={lastSeenTs} />}</td>
      <td class="fleet-labels">
        {labels.map((label) => (
          <span key={label} class="label">
            {label}
          </span>
        ))}
      </td>
    </tr>
  );
}

/** A column by which the service sorts; once more turns it round. */
function Sortable({ column, label }: { column: 'name' | 'lastSeenTs'; label: string }) {
  const sort = queryOf('sort') || 'name';
  const isUp = sort === column;
  const isDown = sort === `-${column}`;
  const direction = isUp ? 'ascending' : isDown ? 'descending' : 'none';
  const next = isUp || (column === 'lastSeenTs' && !isDown) ? `-${column}` : column;
  return (
    <th scope="col" aria-sort={direction}>
      <button type="button" class="sort" onClick={() => setQuery({ sort: next, cursor: '' })}>
        {label}
        <span class="sort-arrow" aria-hidden="true">
          {isUp ? '↑' : isDown ? '↓' : ''}
        </span>
      </button>
    </th>
  );
}
