import { useQuery } from '../../api/cache.ts';
import { listRemovedLogins, type RemovedLogin } from '../../api/device.ts';
import { Ago } from '../../parts/status.tsx';
import { formatNumber, formatTime } from '../../text/format.ts';
import { count, t } from '../../text/t.ts';

/** A uuid that is refused is written once a minute. */
const everyMs = 60_000;

/** Devices that were removed and not switched off; nothing where there is none. */
export function RemovedDevices() {
  const { data: logins = [] } = useQuery('removed-logins', listRemovedLogins, { everyMs });
  const devices = [...Map.groupBy(logins, ({ deviceAuthUuid }) => deviceAuthUuid).values()];
  if (devices.length === 0) return null;
  return (
    <details class="panel removed">
      <summary>{count('removed.title', devices.length)}</summary>
      <p class="fine">{t('removed.hint')}</p>
      <ul class="rejections">
        {devices.map(
          (of) => of[0] && <Removed key={of[0].deviceAuthUuid} newest={of[0]} of={of} />,
        )}
      </ul>
    </details>
  );
}

function Removed({ newest, of }: { newest: RemovedLogin; of: readonly RemovedLogin[] }) {
  const { deviceAuthUuid: uuid, name, address, removedTs, timestamp } = newest;
  const times = of.reduce((sum, login) => sum + login.count, 0);
  const firstTs = Math.min(...of.map((login) => login.firstTs));
  return (
    <li>
      <p class="rejection-what">
        <strong>{name || t('fleet.unnamed')}</strong>
        <Ago ts={timestamp} />
      </p>
      <p class="fine">
        {address === undefined ? t('login.fromUnknown') : t('login.from', { address })}
        {times > 1 &&
          `, ${t('login.times', { count: formatNumber(times), time: formatTime(firstTs) })}`}
      </p>
      <p class="fine">{t('removed.when', { time: formatTime(removedTs), uuid })}</p>
    </li>
  );
}
