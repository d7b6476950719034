import { useEffect, useRef } from 'preact/hooks';
import type { ListedDevice } from '../../api/devices.ts';
import { useLatest } from '../../api/measurements.ts';
import { queryOf, setQuery } from '../../app/router.ts';
import { t } from '../../text/t.ts';
import { Row } from './fleet-row.tsx';
import { isSelected, select } from './selection.ts';

/** A page of devices; below 700 px each is a row of two lines. */
export function FleetTable({ devices }: { devices: readonly ListedDevice[] }) {
  const { data: latest = [] } = useLatest(devices.map(({ uuid }) => uuid));
  const values = Map.groupBy(latest, ({ deviceAuthUuid }) => deviceAuthUuid);
  return (
    <table class="table fleet">
      <thead>
        <tr>
          <th scope="col" class="fleet-pick">
            <PickPage devices={devices} />
          </th>
          <Sortable column="name" label={t('fleet.name')} />
          <th scope="col" class="fleet-state">
            {t('fleet.state')}
          </th>
          <th scope="col">{t('fleet.values')}</th>
          <Sortable column="lastSeenTs" label={t('fleet.lastSeen')} />
          <th scope="col" class="fleet-labels">
            {t('fleet.labels')}
          </th>
        </tr>
      </thead>
      <tbody>
        {devices.map((device) => (
          <Row
            key={device.uuid}
            device={device}
            values={values.get(device.uuid) ?? []}
            page={devices}
          />
        ))}
      </tbody>
    </table>
  );
}

/** All of this page, or none of it. */
function PickPage({ devices }: { devices: readonly ListedDevice[] }) {
  const box = useRef<HTMLInputElement>(null);
  const number = devices.filter(({ uuid }) => isSelected(uuid)).length;
  const isPart = number > 0 && number < devices.length;
  useEffect(() => {
    if (box.current) box.current.indeterminate = isPart;
  }, [isPart]);
  return (
    <label class="pick">
      <input
        ref={box}
        type="checkbox"
        checked={number > 0 && !isPart}
        onChange={({ currentTarget }) => select(devices, currentTarget.checked, devices)}
      />
      <span class="pick-word">{t('fleet.selectPage')}</span>
    </label>
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
    <th scope="col" class={column === 'name' ? 'fleet-name' : 'fleet-seen'} aria-sort={direction}>
      <button
        type="button"
        class="sort"
        onClick={() => setQuery({ sort: next, cursor: '', from: '' })}
      >
        {label}
        <span class="sort-arrow" aria-hidden="true">
          {isUp ? '↑' : isDown ? '↓' : ''}
        </span>
      </button>
    </th>
  );
}
