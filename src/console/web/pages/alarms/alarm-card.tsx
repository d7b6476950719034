import { useId } from 'preact/hooks';
import type { LatestView, ListedAlarm } from '../../api/types.ts';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { formatValue } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { AlarmActions } from './alarm-actions.tsx';
import { AlarmDetails } from './alarm-details.tsx';
import { AlarmTimes } from './alarm-times.tsx';
import { chartAt } from './chart-link.ts';

type CardProps = {
  alarm: ListedAlarm;
  hasDevice: boolean;
  /** How the senses of its device are named and shown; undefined as long as it is not known. */
  latest: readonly LatestView[] | undefined;
};

/** One alarm: what, where, since when, whether somebody was told, and what to do. */
export function AlarmCard({ alarm, hasDevice, latest }: CardProps) {
  const { state, eventName, deviceName, deviceAuthUuid, snoozed, muted } = alarm;
  const id = useId();
  return (
    <li class={`alarm alarm-${state}`}>
      <div class="alarm-mark">
        <Icon name={state === 'open' ? (snoozed || muted ? 'quiet' : 'warn') : 'check'} />
      </div>
      <div class="alarm-what">
        <p class="alarm-title" id={id}>
          <span class="hidden">{t(`alarms.${state}`)}: </span>
          <strong>{eventName || t('event.unknown', { id: alarm.evId })}</strong>
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
      {state !== 'closed' && <AlarmActions alarm={alarm} describedBy={id} />}
    </li>
  );
}

function AlarmValues({ alarm: { values }, latest }: Pick<CardProps, 'alarm' | 'latest'>) {
  if (!latest) return null;
  return (
    <>
      {values.map(({ sId, val, lat, long }) => {
        const sense = latest.find((each) => each.sId === sId);
        const isPosition = lat !== undefined && long !== undefined;
        return (
          <span key={sId}>
            {sense?.name ?? sId}{' '}
            <strong>{formatValue(isPosition ? { lat, long } : val, sense)}</strong>
          </span>
        );
      })}
    </>
  );
}
