import { useId } from 'preact/hooks';
import type { LatestView, ListedAlarm } from '../../api/types.ts';
import { now } from '../../app/now.ts';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { formatFullTime, formatTime } from '../../text/format.ts';
import { count, t, tryText } from '../../text/t.ts';
import { aboutOf, beganOf, overOf, sayTimes } from './about.ts';
import { AlarmActions } from './alarm-actions.tsx';

type CardProps = {
  alarm: ListedAlarm;
  hasDevice: boolean;
  /** How the senses of its device are named and shown; undefined until that is known. */
  latest: readonly LatestView[] | undefined;
};

/** One alarm: what, where, since when, whether somebody was notified, and what to do. */
export function AlarmBody({ alarm, hasDevice, latest }: CardProps) {
  const { state, eventName, deviceName, deviceAuthUuid, snoozed, muted } = alarm;
  const id = useId();
  return (
    <div class={`alarm alarm-${state}`}>
      <div class="alarm-mark">
        <Icon name={state === 'open' ? (snoozed || muted ? 'quiet' : 'warn') : 'check'} />
      </div>
      <div class="alarm-what">
        <p class="alarm-title" id={id}>
          <span class="hidden">{t(`alarms.${state}`)}: </span>
          <strong>{eventName || t('event.unknown', { id: alarm.evId })}</strong>
          {alarm.severity !== 'warning' && (
            <span class="tag">{t(`severity.${alarm.severity}`)}</span>
          )}
          {hasDevice && (
            <Link to={`devices/${deviceAuthUuid}`} class="link alarm-device">
              {deviceName || t('fleet.unnamed')}
            </Link>
          )}
        </p>
        <p class="alarm-values">
          <AlarmValues alarm={alarm} latest={latest} />
          <Link to={chartAt(alarm)} class="link">
            <Icon name="chart" />
            {t('alarms.chart')}
          </Link>
        </p>
        <AlarmTimes alarm={alarm} />
        <AlarmDetails alarm={alarm} hasDevice={hasDevice} />
      </div>
      <AlarmActions alarm={alarm} describedBy={id} latest={latest} />
    </div>
  );
}

/** What it was about: the condition and the value furthest beyond it, and what it is now while it is open. */
function AlarmValues({ alarm, latest }: Pick<CardProps, 'alarm' | 'latest'>) {
  if (!latest) return null;
  const { condition, extreme, now: value } = aboutOf(alarm, latest);
  return (
    <>
      {condition !== '' && <span class="alarm-condition">{condition}</span>}
      {extreme !== '' && <strong>{extreme}</strong>}
      {value !== '' && <span>{t('alarms.now', { value })}</span>}
      {condition === '' && extreme === '' && value === '' && (
        <span class="muted">{t('alarms.notKept')}</span>
      )}
    </>
  );
}

const hourMs = 3_600_000;

/** The device's chart around the beginning of an alarm, including some time before it. */
function chartAt(alarm: ListedAlarm): string {
  const began = beganOf(alarm);
  const over = overOf(alarm) ?? now();
  const end = Math.min(now(), over + hourMs, began + 12 * hourMs);
  return `devices/${alarm.deviceAuthUuid}?from=${began - hourMs}&to=${Math.max(end, began + 1)}`;
}

/** Since when, whether somebody was notified, and until when notifications are suppressed. */
function AlarmTimes({ alarm }: { alarm: ListedAlarm }) {
  const { acknowledgedTs, endsTs, closedTs, closedBy, snoozed, muted } = alarm;
  const time = (ts: number) => ({ time: formatTime(ts) });
  return (
    <>
      <p class="fine">
        <span title={formatFullTime(beganOf(alarm))}>{sayTimes(alarm)}</span>
        {alarm.firings > 1 && ` · ${count('alarms.firings', alarm.firings)}`}
      </p>
      <p class="fine">
        {sayTold(alarm)}
        {acknowledgedTs !== null && ` ${t('alarms.acknowledgedAt', time(acknowledgedTs))}`}
        {closedTs !== null &&
          closedBy !== null &&
          ` ${t('alarms.closedAt', { ...time(closedTs), why: t(`alarms.closedBy.${closedBy}`) })}`}
        {closedTs === null && endsTs !== null && ` ${t('alarms.ends', time(endsTs))}`}
      </p>
      {alarm.notes.map(({ ts, text }) => (
        <p key={ts} class="alarm-note">
          {t('alarms.noted', { time: formatTime(ts), text })}
        </p>
      ))}
      {snoozed && (
        <Quiet text={t('alarms.snoozed', time(snoozed.untilTs))} reason={snoozed.reason} />
      )}
      {muted && <Quiet text={t('alarms.muted', time(muted.untilTs))} reason={muted.reason} />}
    </>
  );
}

function Quiet({ text, reason }: { text: string; reason: string | null }) {
  return (
    <p class="fine alarm-quiet">
      {text}
      {reason !== null && `: ${reason}`}
    </p>
  );
}

type Delivery = ListedAlarm['deliveries'][number];

const reached = ['sent', 'logged'];

/** A sentence that says whether somebody was notified: who and when, or why nobody was. */
function sayTold(alarm: ListedAlarm): string {
  const { told, notNotified, announcedTs, deliveries } = alarm;
  if (told === 'queued') return t('alarms.told.queued');
  if (told === 'withdrawn' && notNotified === 'snoozed') return sayWithdrawn(alarm);
  if (told === 'withdrawn') return t('alarms.told.withdrawn');
  if (told === 'told') return sayWho(deliveries, announcedTs);
  return notNotified === null ? t('alarms.told.listed') : t(`alarms.notTold.${notNotified}`);
}

/** Messages are not kept for ever; after that the page can say that somebody was notified, but not who. */
function sayWho(deliveries: readonly Delivery[], announcedTs: number | null): string {
  const arrived = arrivedOf(deliveries);
  const first = arrived.at(-1);
  if (first) {
    const who = [...new Set(arrived.map(({ recipient }) => unbroken(recipient)))].join(', ');
    return t('alarms.told.told', { time: formatTime(first.changedTs), who });
  }
  return announcedTs === null
    ? t('alarms.told.before')
    : t('alarms.told.somebody', { time: formatTime(announcedTs) });
}

/** Withdrawn by a snooze, which undoes nothing that arrived. Once acknowledged, it is not announced again. */
function sayWithdrawn({ deliveries, acknowledgedTs }: ListedAlarm): string {
  if (arrivedOf(deliveries).length === 0) return t('alarms.notTold.snoozed');
  const who = sayWho(deliveries, null);
  return acknowledgedTs === null ? `${who} ${t('alarms.told.again')}` : who;
}

const arrivedOf = (deliveries: readonly Delivery[]) =>
  deliveries.filter(({ state, type }) => reached.includes(state) && type !== 'closed');

/** One message: the channel, the recipient, the outcome with its time, and the reason. */
function sayDelivery(delivery: Delivery): string {
  const { kind, recipient, type, state, changedTs, dueTs, reason } = delivery;
  const who = unbroken(recipient);
  const what = tryText(`delivery.type.${type}`, '');
  const subject = t(`delivery.${kind}`, { who }) + (what === '' ? '' : ` (${what})`);
  const outcome = t(`delivery.${state}`, { time: formatTime(dueTs ?? changedTs) });
  const why = reason === undefined ? '' : tryText(`delivery.why.${reason}`, reason);
  return `${[`${subject} ${outcome}`, why].filter(Boolean).join(': ')}.`;
}

/** Addresses are shortened to a…@example.com: prevents a line break after the dots. */
const unbroken = (recipient: string) => recipient.replaceAll('…', '…\u2060');

/** What is needed less often: which purpose, and the outcome of each message. */
function AlarmDetails({ alarm, hasDevice }: { alarm: ListedAlarm; hasDevice: boolean }) {
  const { purposeName, stateName, deliveries, deviceAuthUuid } = alarm;
  return (
    <details class="alarm-details">
      <summary>{t('alarms.more')}</summary>
      <dl>
        <Fact name={t('alarms.purpose')} text={purposeName} />
        <Fact name={t('alarms.state')} text={stateName} />
      </dl>
      {deliveries.length > 0 && (
        <>
          <p class="alarm-messages">{t('alarms.messages')}</p>
          <ul>
            {deliveries.map((delivery, place) => (
              <li key={place}>{sayDelivery(delivery)}</li>
            ))}
          </ul>
        </>
      )}
      {hasDevice && (
        <Link to={`alarms?device=${deviceAuthUuid}`} class="link">
          {t('alarms.othersOf')}
        </Link>
      )}
    </details>
  );
}

function Fact({ name, text }: { name: string; text: string }) {
  if (text === '') return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>{text}</dd>
    </div>
  );
}
