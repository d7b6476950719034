import { computed, effect, signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { FleetFilter, ListedDevice } from '../../api/devices.ts';
import { useLatest } from '../../api/measurements.ts';
import type { DeviceAction, LatestView } from '../../api/types.ts';
import { here, queryOf, setQuery } from '../../app/router.ts';
import { accountOf } from '../../app/session.ts';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { rhythmOf } from '../../parts/presence.ts';
import { Ago, Muted, Status } from '../../parts/status.tsx';
import { formatFullTime, formatNumber, formatTime, formatValue } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { isBeyond } from '../alarms/about.ts';
import { learnNames, nameOf, toDeviceFilter } from './filter.tsx';

/** A page of devices; below 700 px each is a row of two lines. */
export function FleetTable({ devices }: { devices: readonly ListedDevice[] }) {
  const { data: latest } = useLatest(devices.map(({ uuid }) => uuid));
  const values = Map.groupBy(latest ?? [], ({ deviceAuthUuid }) => deviceAuthUuid);
  useEffect(() => learnNames(devices, latest), [devices, latest === undefined]);
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
          <ValuesHead latest={latest ?? []} />
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
            values={latest && (values.get(device.uuid) ?? [])}
            page={devices}
          />
        ))}
      </tbody>
    </table>
  );
}

/** Selects all devices of this page, or none. */
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

/** A column that the service sorts by; a second click reverses it. */
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

/** The column of values: which of them the list is sorted by is chosen here. */
function ValuesHead({ latest }: { latest: readonly LatestView[] }) {
  const sort = queryOf('sort');
  const [, sId = ''] = /^-?value:(.+)$/v.exec(sort) ?? [];
  const names = new Map(sId === '' ? [] : [[sId, sId]]);
  for (const { sId: each, name, val } of latest)
    if (typeof val === 'number') names.set(each, name ?? each);
  const isOn = sId !== '';
  return (
    <th
      scope="col"
      class="fleet-by-value"
      aria-sort={isOn ? (sort.startsWith('-') ? 'descending' : 'ascending') : 'none'}
    >
      <span>{t('fleet.values')}</span>
      {names.size > 0 && (
        <select
          class="fleet-sort"
          aria-label={t('fleet.sortByValue')}
          value={isOn ? sort : ''}
          onChange={({ currentTarget }) =>
            setQuery({ sort: currentTarget.value, cursor: '', from: '' })
          }
        >
          <option value="">{t('fleet.sortByNone')}</option>
          {[...names].flatMap(([each, name]) => [
            <option key={`-${each}`} value={`-value:${each}`}>
              {t('fleet.highestFirst', { name })}
            </option>,
            <option key={each} value={`value:${each}`}>
              {t('fleet.lowestFirst', { name })}
            </option>,
          ])}
        </select>
      )}
    </th>
  );
}

type RowProps = {
  device: ListedDevice;
  /** Undefined until they are known. */
  values: readonly LatestView[] | undefined;
  page: readonly ListedDevice[];
};

function Row({ device, values, page }: RowProps) {
  const { uuid, serial, labels, lastSeenTs } = device;
  const name = device.name.trim() || t('fleet.unnamed');
  const isOn = isSelected(uuid);
  return (
    <tr class={isOn ? 'is-selected' : undefined}>
      <td class="fleet-pick">
        <label class="pick">
          <input
            type="checkbox"
            checked={isOn}
            aria-label={t('fleet.select', { name })}
            onChange={({ currentTarget }) => select([device], currentTarget.checked, page)}
          />
        </label>
      </td>
      <th scope="row" class="fleet-name">
        <Link to={`devices/${uuid}`} class="row-link">
          {name}
        </Link>
        {serial && <span class="fine">{serial}</span>}
      </th>
      <td class="fleet-state">
        <State device={device} values={values} />
      </td>
      <td class="fleet-values">
        {firstOf(values ?? []).map((value) => {
          const { sId, val, name = sId, unit, decimals } = value;
          const isBad = isBeyond(value);
          return (
            <span key={sId} class="fleet-value" title={name}>
              {unit === undefined && <span class="fine">{name} </span>}
              <span class={isBad ? 'beyond' : undefined}>
                {formatValue(val, { unit, decimals })}
              </span>
              {isBad && <span class="hidden"> {t('fleet.beyond')}</span>}
            </span>
          );
        })}
      </td>
      <td class="fleet-seen">{lastSeenTs !== null && <Ago ts={lastSeenTs} />}</td>
      <td class="fleet-labels">
        {labels.map((label) => (
          <Link key={label} to={withLabel(label)} class="label">
            {label}
          </Link>
        ))}
      </td>
    </tr>
  );
}

/** As many as there is room for; those beyond a limit first. */
const firstOf = (values: readonly LatestView[]) =>
  values.toSorted((a, b) => Number(isBeyond(b)) - Number(isBeyond(a))).slice(0, 3);

function withLabel(label: string): string {
  const query = new URLSearchParams(here.value.query);
  for (const name of ['cursor', 'from']) query.delete(name);
  query.set('label', label);
  return `?${query.toString()}`;
}

/** The devices to act on: named ones, or all that match a filter. Outlives the page, so that Back finds it. */
type Selection =
  { kind: 'some'; names: ReadonlyMap<string, string> } | { kind: 'all'; filter: FleetFilter };

const none: Selection = { kind: 'some', names: new Map() };

export const selection = signal<Selection>(none);

export const clearSelection = (): void => void (selection.value = none);

/** It is cleared when somebody else signs in. */
const whose = computed(() => accountOf()?.accountAuthUuid);
effect(() => {
  void whose.value;
  clearSelection();
});

export const selectAll = (filter: FleetFilter): void =>
  void (selection.value = { kind: 'all', filter });

/** Drops the selection of a filter that is no longer shown. */
export function forgetOtherFilter(filter: FleetFilter): void {
  const { value } = selection;
  if (value.kind === 'all' && nameOf(value.filter) !== nameOf(filter)) clearSelection();
}

const isSelected = (uuid: string): boolean => {
  const { value } = selection;
  return value.kind === 'all' || value.names.has(uuid);
};

/** Selects or deselects devices. If all matching devices were selected, only those of `page` stay selected. */
function select(
  devices: readonly ListedDevice[],
  isOn: boolean,
  page: readonly ListedDevice[],
): void {
  const { value } = selection;
  const before = value.kind === 'some' ? value.names : namesOf(page);
  const names = new Map(before);
  for (const [uuid, name] of namesOf(devices))
    if (isOn) names.set(uuid, name);
    else names.delete(uuid);
  selection.value = { kind: 'some', names };
}

const namesOf = (devices: readonly ListedDevice[]) =>
  new Map(devices.map(({ uuid, name }) => [uuid, name]));

/** How many are selected; `matching`: how many devices match the filter. */
export const countSelected = (of: Selection, matching: number): number =>
  of.kind === 'all' ? matching : of.names.size;

/** The same as members of a request. */
export const toTarget = (of: Selection): Pick<DeviceAction, 'deviceAuthUuids' | 'filter'> =>
  of.kind === 'all'
    ? { filter: toDeviceFilter(of.filter) }
    : { deviceAuthUuids: [...of.names.keys()] };

/** Problems of a device first; that it is connected only if there are none. */
type StateProps = {
  device: ListedDevice;
  values: readonly LatestView[] | undefined;
};

function State({ device, values }: StateProps) {
  const { uuid, alarmSinceTs, refusedTs, connected } = device;
  const isWrong = alarmSinceTs !== undefined || refusedTs !== undefined;
  return (
    <div class="states">
      {alarmSinceTs !== undefined && (
        <span class="status status-alarm" title={formatFullTime(alarmSinceTs)}>
          <Icon name="warn" />
          <span class="status-text">{sayAlarms(device, alarmSinceTs)}</span>
        </span>
      )}
      {refusedTs !== undefined && (
        <Link to={`devices/${uuid}?tab=rejections`} class="status status-refused">
          {t('fleet.refusedAt', { time: formatTime(refusedTs) })}
        </Link>
      )}
      <Muted {...device} />
      {!(isWrong && connected) && refusedTs === undefined && (
        <Status {...device} {...rhythmOf(values)} />
      )}
      {device.stateName && (
        <span class="fine" title={formatFullTime(device.state.ts)}>
          {t('device.inState', { state: device.stateName, time: formatTime(device.state.ts) })}
        </span>
      )}
    </div>
  );
}

/** What is wrong and since when; of several the worst. */
function sayAlarms({ openAlarms = 1, alarmName: name }: ListedDevice, sinceTs: number): string {
  const time = formatTime(sinceTs);
  const more = openAlarms - 1;
  if (more > 0 && name) return t('fleet.alarmAndMore', { name, more: formatNumber(more), time });
  if (more > 0) return t('fleet.alarms', { count: formatNumber(openAlarms), time });
  return name ? t('fleet.alarmNamed', { name, time }) : t('fleet.alarm', { time });
}
