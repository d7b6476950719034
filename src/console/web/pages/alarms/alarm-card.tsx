import { useQuery } from '../../api/cache.ts';
import { getConfiguration } from '../../api/devices.ts';
import type { ListedAlarm } from '../../api/types.ts';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { nameOfSense, sensesOf } from '../../parts/senses.ts';
import { formatFullTime, formatTime, formatValue } from '../../text/format.ts';
import { count, t } from '../../text/t.ts';
import { AlarmActions } from './alarm-actions.tsx';
import { sayTold } from './say-told.ts';

const hourMs = 3_600_000;

/** One alarm: what, where, since when, whether somebody was told, and what to do. */
export function AlarmCard({
  alarm,
  hasDevice = false,
}: {
  alarm: ListedAlarm;
  hasDevice?: boolean;
}) {
  const { state, eventName, deviceName, sinceTs, closedTs, snoozed, muted } = alarm;
  return (
    <li class={`alarm alarm-${state}`}>
      <div class="alarm-mark">
        <Icon name={state === 'open' ? (snoozed || muted ? 'quiet' : 'warn') : 'check'} />
      </div>
      <div class="alarm-what">
        <p class="alarm-title">
          <strong>{eventName}</strong>
          <span class={`state state-${state}`}>{t(`alarms.${state}`)}</span>
        </p>
        {hasDevice && (
          <Link to={chartAt(alarm)} class="link alarm-device">
            {deviceName || t('fleet.unnamed')}
          </Link>
        )}
        <AlarmValues alarm={alarm} />
        <p class="fine">
          <span title={formatFullTime(sinceTs)}>
            {t('alarms.since', { time: formatTime(sinceTs) })}
          </span>
          {' · '}
          {count('alarms.firings', alarm.firings)}
          {' · '}
          {sayTold(alarm)}
        </p>
        {closedTs !== null && alarm.closedBy !== null && (
          <p class="fine">{`${formatTime(closedTs)}: ${t(`alarms.closedBy.${alarm.closedBy}`)}`}</p>
        )}
        {snoozed && (
          <Quiet
            text={t('alarms.snoozed', { time: formatTime(snoozed.untilTs) })}
            reason={snoozed.reason}
          />
        )}
        {muted && (
          <Quiet
            text={t('alarms.muted', { time: formatTime(muted.untilTs) })}
            reason={muted.reason}
          />
        )}
      </div>
      {state !== 'closed' && <AlarmActions alarm={alarm} />}
    </li>
  );
}

/** The device's chart, around the time when it began. */
function chartAt({ deviceAuthUuid, sinceTs, lastFiringTs }: ListedAlarm): string {
  return `devices/${deviceAuthUuid}?from=${sinceTs - hourMs}&to=${lastFiringTs + hourMs}`;
}

function Quiet({ text, reason }: { text: string; reason: string | null }) {
  return (
    <p class="fine alarm-quiet">
      {text}
      {reason !== null && `: ${reason}`}
    </p>
  );
}

function AlarmValues({ alarm: { deviceAuthUuid: uuid, values } }: { alarm: ListedAlarm }) {
  const { data } = useQuery(`configuration/${uuid}`, (signal) => getConfiguration(uuid, signal));
  const senses = data ? sensesOf(data) : new Map();
  if (values.length === 0 || !data) return null;
  return (
    <p class="alarm-values">
      {values.map(({ sId, val }) => (
        <span key={sId}>
          {nameOfSense(sId, senses.get(sId))} <strong>{formatValue(val, senses.get(sId))}</strong>
        </span>
      ))}
    </p>
  );
}
