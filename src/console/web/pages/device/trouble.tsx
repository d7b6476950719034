import { getDevice } from '../../api/device.ts';
import { listRejections } from '../../api/devices.ts';
import { useQuery } from '../../api/cache.ts';
import { useLatest } from '../../api/measurements.ts';
import type { Sense } from '../../api/types.ts';
import { clock } from '../../app/now.ts';
import { describeRejection } from '../../parts/describe-rejection.ts';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { formatAgo } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { toTab } from './to-tab.ts';

const everyMs = 10_000;
const dayMs = 86_400_000;

/** Of these the values were stored: they are remarks. Others stand for refusals that are listed before them. */
const remarks = ['unknown-member', 'events-not-recorded', 'more-of-message', 'more-of-minute'];
const isRefusal = ({ reason }: { reason: string }) => !remarks.includes(reason);

type TroubleProps = { uuid: string; senses: ReadonlyMap<string, Sense> };

/** Why nothing arrives, where the device tries: its login is refused, or the newest that it sent. */
export function Trouble({ uuid, senses }: TroubleProps) {
  const { data } = useQuery(`device/${uuid}`, (signal) => getDevice(uuid, signal), { everyMs });
  const newest = useQuery(
    `newest-rejection/${uuid}`,
    async (signal) => (await listRejections(uuid, signal)).find(isRefusal) ?? null,
    { everyMs },
  ).data;
  const { data: latest = [] } = useLatest([uuid]);
  const refusedTs = data?.device.refusedTs;
  const storedTs = Math.max(0, ...latest.map(({ ts }) => ts));
  const isRejected =
    newest && newest.timestamp > Math.max(storedTs, clock.value - dayMs) ? newest : null;
  if (refusedTs === undefined && !isRejected) return null;
  return (
    <ul class="troubles">
      {refusedTs !== undefined && (
        <li class="trouble">
          <Icon name="warn" />
          <span>{t('trouble.login', { ago: formatAgo(refusedTs) })}</span>
          <Link to={toTab('rejections')} class="link">
            {t('trouble.why')}
          </Link>
        </li>
      )}
      {isRejected && (
        <li class="trouble">
          <Icon name="warn" />
          <span>
            {t('trouble.message', {
              ago: formatAgo(isRejected.timestamp),
              why: describeRejection(isRejected, senses),
            })}
          </span>
          <Link to={toTab('rejections')} class="link">
            {t('trouble.what')}
          </Link>
        </li>
      )}
    </ul>
  );
}
