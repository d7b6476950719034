import { listAlarms } from '../../api/alarms.ts';
import { useQuery } from '../../api/cache.ts';
import { Link } from '../../parts/link.tsx';
import { Empty } from '../../parts/panel.tsx';
import { formatTime } from '../../text/format.ts';
import { t } from '../../text/t.ts';

type NoneProps = { state: 'open' | 'acknowledged' | 'closed'; isOfAll: boolean };

/** Nothing in this list: what that means. */
export function NoAlarms({ state, isOfAll }: NoneProps) {
  // What drops the filter stands above.
  if (!isOfAll) return <Empty icon="search" title={t('alarms.noMatch')} />;
  if (state === 'open') return <Quiet />;
  const title = t(state === 'closed' ? 'alarms.noClosed' : 'alarms.noAcknowledged');
  return <Empty icon="alarm" title={title} />;
}

/** Quiet, but not if something goes on that somebody has acknowledged. */
function Quiet() {
  const acknowledged = useQuery('alarms/in-hand', (signal) =>
    listAlarms({ state: 'acknowledged', limit: 1 }, signal),
  );
  const closed = useQuery('alarms/last', (signal) =>
    listAlarms({ state: 'closed', limit: 100 }, signal),
  );
  if (acknowledged.data?.body.alarms.length)
    return (
      <Empty icon="check" title={t('alarms.inHand')} hint={t('alarms.inHandHint')}>
        <Link to="alarms?state=acknowledged" class="button">
          {t('alarms.toAcknowledged')}
        </Link>
      </Empty>
    );
  const since = Math.max(...(closed.data?.body.alarms ?? []).map(({ closedTs }) => closedTs ?? 0));
  const title = since > 0 ? t('alarms.quietSince', { time: formatTime(since) }) : t('alarms.quiet');
  return <Empty icon="check" title={title} hint={t('alarms.quietHint')} />;
}
