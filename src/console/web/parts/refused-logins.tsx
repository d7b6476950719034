import type { RefusedLogin } from '../api/device.ts';
import { formatFullTime, formatNumber, formatTime } from '../text/format.ts';
import { t, tryText } from '../text/t.ts';
import { Ago } from './status.tsx';

/** Who was not let in: when, from where, why, and what to do about it. */
export function RefusedLogins({ logins }: { logins: readonly RefusedLogin[] }) {
  return (
    <ul class="rejections">
      {logins.map(({ timestamp, firstTs, count, reason, message, address = '' }) => (
        <li key={`${reason} ${address}`}>
          <p class="rejection-what">
            <strong>{tryText(`login.${reason}`, message)}</strong>
            <Ago ts={timestamp} />
          </p>
          <p class="fine" title={formatFullTime(firstTs)}>
            {address === '' ? t('login.fromUnknown') : t('login.from', { address })}
            {count > 1 &&
              `, ${t('login.times', { count: formatNumber(count), time: formatTime(firstTs) })}`}
          </p>
          <p class="fine">{tryText(`login.todo.${reason}`, '')}</p>
        </li>
      ))}
    </ul>
  );
}
