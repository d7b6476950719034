import { useEffect, useRef, useState } from 'preact/hooks';
import { reload, useQuery } from '../../api/cache.ts';
import { type AlarmFilter, listAlarms } from '../../api/events.ts';
import { useLatest } from '../../api/measurements.ts';
import type { LatestView, ListedAlarm } from '../../api/types.ts';
import { onStream } from '../../app/stream.ts';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { formatFullTime } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { aboutOf, beganOf, sayLasting } from './about.ts';
import { AlarmBody } from './alarm-card.tsx';
import { dropPicked, isPicked, pick, SelectionBar } from './selection.tsx';

/** As many as the service lists at once. */
const mostOfDevice = 100;

/** A device's alarms that are not closed, open ones first, kept up to date. `total`: also those that are not listed. */
export function useAlarmsOf(uuid: string): { alarms: readonly ListedAlarm[]; total: number } {
  const key = `alarms/of/${uuid}`;
  const { data } = useQuery(key, async (signal) => {
    const ask = (state: string) =>
      listAlarms({ state, device: uuid, sort: 'severity', limit: mostOfDevice }, signal);
    const answers = await Promise.all([ask('open'), ask('acknowledged')]);
    // One that was acknowledged between the two answers is in both.
    const alarms = new Map(
      answers.flatMap(({ body }) => body.alarms).map((alarm) => [alarm.alarmId, alarm]),
    );
    const total = answers.reduce((sum, { body }) => sum + body.total, 0);
    return { alarms: [...alarms.values()], total: Math.max(total, alarms.size) };
  });
  useEffect(
    () =>
      onStream((message) => {
        if (message.kind === 'alarm' && message.deviceAuthUuid === uuid) reload(key);
      }),
    [key],
  );
  return data ?? { alarms: [], total: 0 };
}

type ListProps = {
  alarms: readonly ListedAlarm[];
  /** Of many devices: what the list shows, and how many alarms that finds. */
  found?: { filter: AlarmFilter; total: number };
};

/** A few alarms are cards, which say everything at once; more are rows. */
const mostCards = 4;

/**
 * The alarms of many devices (`found`), or of one. What has become rows stays rows, and a card among them stays
 * open, so that nothing that somebody types goes while alarms open and close.
 */
export function AlarmList({ alarms, found }: ListProps) {
  const uuids = [...new Set(alarms.map(({ deviceAuthUuid }) => deviceAuthUuid))];
  const { data } = useLatest(uuids);
  const latest = data && Map.groupBy(data, ({ deviceAuthUuid }) => deviceAuthUuid);
  const latestOf = ({ deviceAuthUuid }: ListedAlarm) =>
    latest && (latest.get(deviceAuthUuid) ?? []);
  const isRows = useRef(false);
  isRows.current ||= found !== undefined && alarms.length > mostCards;
  const open = alarms.filter(({ state }) => state !== 'closed');
  useEffect(() => followPicked(found?.filter.state), [found?.filter.state]);
  // Where this page is the whole list, only what is on it can be selected.
  const isWhole = found !== undefined && found.total <= alarms.length;
  useEffect(() => {
    const here = new Set(open.map(({ alarmId }) => alarmId));
    if (isWhole) dropPicked(({ alarmId }) => !here.has(alarmId));
  }, [isWhole && open.map(({ alarmId }) => alarmId).join()]);
  return (
    <>
      <section
        class={isRows.current ? 'panel panel-flush' : undefined}
        aria-label={t('alarms.title')}
      >
        {isRows.current && open.length > 0 && <PickPage alarms={open} />}
        <ul key="list" class={isRows.current ? 'alarm-rows' : 'alarms'}>
          {alarms.map((alarm) => (
            <Item
              key={alarm.alarmId}
              alarm={alarm}
              latest={latestOf(alarm)}
              page={open}
              hasDevice={found !== undefined}
              isRow={isRows.current}
            />
          ))}
        </ul>
      </section>
      {found && <SelectionBar page={open} latestOf={latestOf} {...found} />}
    </>
  );
}

/** Deselects an alarm once it is no longer in the state that the list shows, on whatever page it is. */
const followPicked = (state = '') =>
  onStream((message) => {
    if (message.kind !== 'alarm' || !message.alarm || message.alarm.state === state) return;
    const { alarmId } = message.alarm;
    dropPicked((picked) => picked.alarmId === alarmId);
  });

function PickPage({ alarms }: { alarms: readonly ListedAlarm[] }) {
  return (
    <label class="pick alarm-pick-all">
      <input
        type="checkbox"
        checked={alarms.every(isPicked)}
        onChange={({ currentTarget }) => pick(alarms, currentTarget.checked, alarms)}
      />
      <span>{t('fleet.selectPage')}</span>
    </label>
  );
}

type ItemProps = {
  alarm: ListedAlarm;
  latest: readonly LatestView[] | undefined;
  /** Those of the page that can be selected. */
  page: readonly ListedAlarm[];
  hasDevice: boolean;
  isRow: boolean;
};

function Item({ alarm, latest, page, hasDevice, isRow }: ItemProps) {
  const [isOpen, setIsOpen] = useState(!isRow);
  const isOn = isRow && alarm.state !== 'closed' && isPicked(alarm);
  return (
    <li class={isOn ? 'is-selected' : undefined}>
      {isRow && (
        <Row
          alarm={alarm}
          latest={latest}
          page={page}
          isOn={isOn}
          isOpen={isOpen}
          onOpen={() => setIsOpen(!isOpen)}
        />
      )}
      {(!isRow || isOpen) && (
        <AlarmBody key="body" alarm={alarm} hasDevice={hasDevice} latest={latest} />
      )}
    </li>
  );
}

type RowProps = Pick<ItemProps, 'alarm' | 'latest' | 'page'> & {
  isOn: boolean;
  isOpen: boolean;
  onOpen: () => void;
};

function Row({ alarm, latest, page, isOn, isOpen, onOpen }: RowProps) {
  const { eventName, deviceName, deviceAuthUuid, state, snoozed, muted } = alarm;
  const name = eventName || t('event.unknown', { id: alarm.evId });
  const device = deviceName || t('fleet.unnamed');
  const about = aboutOf(alarm, latest);
  return (
    <div class={`alarm-row alarm-row-${state} alarm-row-${alarm.severity}`}>
      <label class="pick">
        {state !== 'closed' && (
          <input
            type="checkbox"
            checked={isOn}
            aria-label={t('fleet.select', { name: `${name}, ${device}` })}
            onChange={({ currentTarget }) => pick([alarm], currentTarget.checked, page)}
          />
        )}
      </label>
      <Icon name={state === 'open' ? (snoozed || muted ? 'quiet' : 'warn') : 'check'} />
      <button type="button" class="alarm-row-name" aria-expanded={isOpen} onClick={onOpen}>
        <span class="hidden">{t(`alarms.${state}`)}: </span>
        {name}
        {alarm.severity !== 'warning' && (
          <span class="fine"> {t(`severity.${alarm.severity}`)}</span>
        )}
      </button>
      <Link to={`devices/${deviceAuthUuid}`} class="link alarm-row-device">
        {device}
      </Link>
      <span class="alarm-row-value">{about.peak || about.now || about.condition}</span>
      <span class="alarm-row-time" title={formatFullTime(beganOf(alarm))}>
        {sayLasting(alarm)}
      </span>
    </div>
  );
}
