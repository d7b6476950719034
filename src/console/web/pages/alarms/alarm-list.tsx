import { effect, signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { reload, useQuery } from '../../api/cache.ts';
import { acknowledgeAlarm, closeAlarm, listAlarms, snoozeAlarm } from '../../api/events.ts';
import { useLatest } from '../../api/measurements.ts';
import type { LatestView, ListedAlarm } from '../../api/types.ts';
import { accountOf } from '../../app/session.ts';
import { onStream, readOpenAlarms } from '../../app/stream.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { Problem, say } from '../../parts/panel.tsx';
import { formatFullTime } from '../../text/format.ts';
import { count, t } from '../../text/t.ts';
import { aboutOf, beganOf, sayLasting, whyOpen } from './about.ts';
import { QuietDialog } from './alarm-actions.tsx';
import { AlarmBody } from './alarm-card.tsx';

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

type ListProps = { alarms: readonly ListedAlarm[]; hasDevice?: boolean };

/** A few alarms are cards, which say everything at once; more are rows. */
const mostCards = 4;

/**
 * The alarms of many devices (`hasDevice`), or of one. What has become rows stays rows, and a card among them stays
 * open, so that nothing that somebody types goes while alarms open and close.
 */
export function AlarmList({ alarms, hasDevice = false }: ListProps) {
  const uuids = [...new Set(alarms.map(({ deviceAuthUuid }) => deviceAuthUuid))];
  const { data } = useLatest(uuids);
  const latest = data && Map.groupBy(data, ({ deviceAuthUuid }) => deviceAuthUuid);
  const latestOf = ({ deviceAuthUuid }: ListedAlarm) =>
    latest && (latest.get(deviceAuthUuid) ?? []);
  const isRows = useRef(false);
  isRows.current ||= hasDevice && alarms.length > mostCards;
  const open = alarms.filter(({ state }) => state !== 'closed');
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
              hasDevice={hasDevice}
              isRow={isRows.current}
            />
          ))}
        </ul>
      </section>
      {hasDevice && picked.value.size > 0 && (
        <Selected alarms={[...picked.value.values()]} latestOf={latestOf} onEnd={clearPicked} />
      )}
    </>
  );
}

/** The alarms to act on. Those of earlier pages of the same filter stay among them. */
const picked = signal<ReadonlyMap<number, ListedAlarm>>(new Map());

export const clearPicked = (): void => void (picked.value = new Map());

/** They are dropped when somebody else signs in. */
effect(() => {
  accountOf();
  clearPicked();
});

function pick(alarms: readonly ListedAlarm[], isOn: boolean): void {
  const next = new Map(picked.value);
  for (const alarm of alarms)
    if (isOn) next.set(alarm.alarmId, alarm);
    else next.delete(alarm.alarmId);
  picked.value = next;
}

function PickPage({ alarms }: { alarms: readonly ListedAlarm[] }) {
  return (
    <label class="pick alarm-pick-all">
      <input
        type="checkbox"
        checked={alarms.every(({ alarmId }) => picked.value.has(alarmId))}
        onChange={({ currentTarget }) => pick(alarms, currentTarget.checked)}
      />
      <span>{t('fleet.selectPage')}</span>
    </label>
  );
}

type ItemProps = {
  alarm: ListedAlarm;
  latest: readonly LatestView[] | undefined;
  hasDevice: boolean;
  isRow: boolean;
};

function Item({ alarm, latest, hasDevice, isRow }: ItemProps) {
  const [isOpen, setIsOpen] = useState(!isRow);
  const isPicked = isRow && picked.value.has(alarm.alarmId);
  return (
    <li class={isPicked ? 'is-selected' : undefined}>
      {isRow && (
        <Row
          alarm={alarm}
          latest={latest}
          isPicked={isPicked}
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

type RowProps = Pick<ItemProps, 'alarm' | 'latest'> & {
  isPicked: boolean;
  isOpen: boolean;
  onOpen: () => void;
};

function Row({ alarm, latest, isPicked, isOpen, onOpen }: RowProps) {
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
            checked={isPicked}
            aria-label={t('fleet.select', { name: `${name}, ${device}` })}
            onChange={({ currentTarget }) => pick([alarm], currentTarget.checked)}
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

type SelectedProps = {
  alarms: readonly ListedAlarm[];
  latestOf: (alarm: ListedAlarm) => readonly LatestView[] | undefined;
  onEnd: () => void;
};

/** So that a hundred do not take a hundred times as long as one. */
const atOnce = 4;

/** What can be done about several alarms. */
function Selected({ alarms, latestOf, onEnd }: SelectedProps) {
  const [asking, setAsking] = useState<'snooze' | 'close' | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [progress, setProgress] = useState<{ done: number; of: number } | null>(null);
  const holding = alarms.filter((alarm) => whyOpen(alarm, latestOf(alarm)) !== '').length;
  const each = async (work: (alarm: ListedAlarm) => Promise<unknown>) => {
    setAsking(null);
    setError(null);
    const of = alarms.length;
    setProgress({ done: 0, of });
    const left = [...alarms];
    const failures: unknown[] = [];
    let done = 0;
    const lane = async () => {
      for (let next = left.pop(); next; next = left.pop()) {
        // One that is refused does not keep the others from it.
        await work(next).catch((thrown: unknown) => failures.push(thrown));
        setProgress({ done: (done += 1), of });
      }
    };
    await Promise.all(Array.from({ length: atOnce }, lane));
    setProgress(null);
    if (failures.length < of) say(count('alarms.handled', of - failures.length));
    if (failures.length > 0) setError(failures[0]);
    else onEnd();
    reload('alarms/');
    await readOpenAlarms();
  };
  const open = alarms.filter(({ state }) => state === 'open');
  return (
    <section class="selection" aria-label={t('alarms.selection')}>
      <p class="selection-count" role="status">
        {progress === null ? count('fleet.selected', alarms.length) : t('jobs.progress', progress)}
      </p>
      <div class="selection-actions">
        {open.length > 0 && (
          <button
            type="button"
            class="button button-soft"
            disabled={progress !== null}
            onClick={() =>
              void each(({ alarmId, state }) =>
                state === 'open' ? acknowledgeAlarm(alarmId) : Promise.resolve(),
              )
            }
          >
            {t('alarms.acknowledge')}
          </button>
        )}
        <button
          type="button"
          class="button"
          disabled={progress !== null}
          onClick={() => setAsking('snooze')}
        >
          {t('alarms.snooze')}
        </button>
        <button
          type="button"
          class="button"
          disabled={progress !== null}
          onClick={() => setAsking('close')}
        >
          {t('alarms.close')}
        </button>
        <button type="button" class="link" onClick={onEnd}>
          {t('act.clear')}
        </button>
      </div>
      {error !== null && <Problem error={error} />}
      {asking === 'close' && (
        <Confirm
          title={count('alarms.closeMany', alarms.length)}
          action={holding > 0 ? t('alarms.closeAnyway') : t('alarms.close')}
          onCancel={() => setAsking(null)}
          // Only what was asked about: one that holds by now is refused, and stays open.
          onConfirm={() => each(({ alarmId }) => closeAlarm(alarmId, { force: holding > 0 }))}
        >
          {holding > 0 && <p>{count('alarms.closeHolding', holding)}</p>}
          <p class="fine">{t('alarms.closeHint')}</p>
        </Confirm>
      )}
      {asking === 'snooze' && (
        <QuietDialog
          title={t('alarms.snooze')}
          action={t('alarms.snooze')}
          onCancel={() => setAsking(null)}
          onQuiet={(quiet) => void each(({ alarmId }) => snoozeAlarm(alarmId, quiet))}
        />
      )}
    </section>
  );
}
