import { useState } from 'preact/hooks';
import { reload } from '../../api/cache.ts';
import { acknowledgeAlarm, closeAlarm, snoozeAlarm } from '../../api/events.ts';
import type { LatestView, ListedAlarm } from '../../api/types.ts';
import { readOpenAlarms } from '../../app/stream.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { Problem, say } from '../../parts/panel.tsx';
import { formatDuration, formatFullTime } from '../../text/format.ts';
import { now } from '../../app/now.ts';
import { count, t } from '../../text/t.ts';
import { aboutOf, beganOf, overOf, whyOpen } from './about.ts';
import { QuietDialog } from './alarm-actions.tsx';
import { AlarmBody } from './alarm-card.tsx';

type RowsProps = {
  alarms: readonly ListedAlarm[];
  latestOf: (alarm: ListedAlarm) => readonly LatestView[] | undefined;
};

/** Many alarms, a row each, which opens to all that a card says; those selected are handled in one go. */
export function AlarmRows({ alarms, latestOf }: RowsProps) {
  const [picked, setPicked] = useState<ReadonlySet<number>>(new Set());
  const selected = alarms.filter(({ alarmId, state }) => picked.has(alarmId) && state !== 'closed');
  const pick = (of: readonly ListedAlarm[], isOn: boolean) => {
    const next = new Set(picked);
    for (const { alarmId } of of)
      if (isOn) next.add(alarmId);
      else next.delete(alarmId);
    setPicked(next);
  };
  const canPick = alarms.some(({ state }) => state !== 'closed');
  return (
    <>
      <section class="panel panel-flush" aria-label={t('alarms.title')}>
        {canPick && (
          <label class="pick alarm-pick-all">
            <input
              type="checkbox"
              checked={selected.length > 0 && selected.length === alarms.length}
              onChange={({ currentTarget }) => pick(alarms, currentTarget.checked)}
            />
            <span>{t('fleet.selectPage')}</span>
          </label>
        )}
        <ul class="alarm-rows">
          {alarms.map((alarm) => (
            <Row
              key={alarm.alarmId}
              alarm={alarm}
              latest={latestOf(alarm)}
              isPicked={picked.has(alarm.alarmId)}
              onPick={alarm.state === 'closed' ? null : (isOn) => pick([alarm], isOn)}
            />
          ))}
        </ul>
      </section>
      {selected.length > 0 && (
        <Selected alarms={selected} latestOf={latestOf} onEnd={() => setPicked(new Set())} />
      )}
    </>
  );
}

type RowProps = {
  alarm: ListedAlarm;
  latest: readonly LatestView[] | undefined;
  isPicked: boolean;
  /** null: it is closed, so there is nothing to do. */
  onPick: ((isOn: boolean) => void) | null;
};

function Row({ alarm, latest, isPicked, onPick }: RowProps) {
  const [isOpen, setIsOpen] = useState(false);
  const { eventName, deviceName, deviceAuthUuid, state, snoozed, muted } = alarm;
  const name = eventName || t('event.unknown', { id: alarm.evId });
  const device = deviceName || t('fleet.unnamed');
  const about = aboutOf(alarm, latest);
  const lastedMs = (overOf(alarm) ?? now()) - beganOf(alarm);
  return (
    <li class={isPicked ? 'is-selected' : undefined}>
      <div class={`alarm-row alarm-row-${state} alarm-row-${alarm.severity}`}>
        <label class="pick">
          {onPick && (
            <input
              type="checkbox"
              checked={isPicked}
              aria-label={t('fleet.select', { name: `${name}, ${device}` })}
              onChange={({ currentTarget }) => onPick(currentTarget.checked)}
            />
          )}
        </label>
        <Icon name={state === 'open' ? (snoozed || muted ? 'quiet' : 'warn') : 'check'} />
        <button
          type="button"
          class="alarm-row-name"
          aria-expanded={isOpen}
          onClick={() => setIsOpen(!isOpen)}
        >
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
          {formatDuration(lastedMs)}
        </span>
      </div>
      {isOpen && <AlarmBody alarm={alarm} hasDevice latest={latest} />}
    </li>
  );
}

type SelectedProps = RowsProps & { onEnd: () => void };

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
