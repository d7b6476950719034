import { listNotifications } from '../../api/devices.ts';
import { useQuery } from '../../api/cache.ts';
import type { NotificationOutcome } from '../../api/types.ts';
import { queryOf } from '../../app/router.ts';
import { Answered, Empty } from '../../parts/panel.tsx';
import { formatNumber, formatTime } from '../../text/format.ts';
import { t, tryText } from '../../text/t.ts';
import type { TabProps } from './tab.ts';
import { Moment, Timeline } from './events-tab.tsx';

const everyMs = 10_000;

/** Messages to people about this device: to whom, when, and the outcome of each. */
export function NotificationsTab({ uuid }: TabProps) {
  const cursor = queryOf('cursor');
  const query = useQuery(
    `notifications/${uuid}/${cursor}`,
    (signal) => listNotifications(uuid, cursor, signal),
    { everyMs },
  );
  return (
    <Answered query={query}>
      {({ body: { notifications }, next }) =>
        notifications.length === 0 ? (
          <Empty icon="quiet" title={t('told.none')} hint={t('told.noneHint')} />
        ) : (
          <Timeline next={next}>
            {notifications.map((each) => (
              <Moment key={each.notificationId} ts={each.timestamp} title={each.title}>
                <p class="event-why">{each.body}</p>
                <p class={`told told-${each.state}`}>{sayOutcome(each)}</p>
              </Moment>
            ))}
          </Timeline>
        )
      }
    </Answered>
  );
}

/** "E-mail to ex…@example.org: sent at 14:05", or why it was not. */
function sayOutcome(outcome: NotificationOutcome): string {
  const { kind, recipient, state, changedTs, reason, error, count, attempts } = outcome;
  const who = t(`delivery.${kind}`, { who: recipient });
  const became =
    state === 'planned'
      ? t('told.state.planned')
      : t(`delivery.${state}`, { time: formatTime(changedTs) });
  const why =
    reason === undefined ? (error ?? '') : tryText(`delivery.why.${reason}`, error ?? reason);
  const parts = [
    `${who}: ${became}${why === '' ? '' : `; ${why}.`}`,
    ...(attempts > 1 ? [t('told.attempts', { count: formatNumber(attempts) })] : []),
    ...(count !== undefined && count > 1 ? [t('told.count', { count: formatNumber(count) })] : []),
  ];
  return parts.join('. ').replaceAll(/\.\.(?= |$)/g, '.');
}
