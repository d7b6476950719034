import type { ListedAlarm } from '../../api/types.ts';
import { formatAgo, formatFullTime, formatTime } from '../../text/format.ts';
import { count, t } from '../../text/t.ts';
import { sayTold } from './say-told.ts';

/** Since when, whether somebody was told, and for how long nobody will be. */
export function AlarmTimes({ alarm }: { alarm: ListedAlarm }) {
  const { sinceTs, acknowledgedTs, endsTs, closedTs, closedBy, snoozed, muted } = alarm;
  const time = (ts: number) => ({ time: formatTime(ts) });
  return (
    <>
      <p class="fine">
        <span title={formatFullTime(sinceTs)}>
          {closedTs === null
            ? t('alarms.since', { ...time(sinceTs), ago: formatAgo(sinceTs) })
            : t('alarms.lasted', { from: formatTime(sinceTs), to: formatTime(closedTs) })}
        </span>
        {' · '}
        {count('alarms.firings', alarm.firings)}
      </p>
      <p class="fine">
        {sayTold(alarm)}
        {acknowledgedTs !== null && ` ${t('alarms.acknowledgedAt', time(acknowledgedTs))}`}
        {closedTs !== null &&
          closedBy !== null &&
          ` ${t('alarms.closedAt', { ...time(closedTs), why: t(`alarms.closedBy.${closedBy}`) })}`}
        {closedTs === null && endsTs !== null && ` ${t('alarms.ends', time(endsTs))}`}
      </p>
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
