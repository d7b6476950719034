import { useQuery } from '../../api/cache.ts';
import { listRefusedLogins, listRejections, type RefusedLogin } from '../../api/devices.ts';
import { Link } from '../../parts/link.tsx';
import { Answered, Empty } from '../../parts/panel.tsx';
import { Rejections } from '../../parts/rejections.tsx';
import { Ago } from '../../parts/status.tsx';
import { formatFullTime, formatNumber, formatTime } from '../../text/format.ts';
import { t, tryText } from '../../text/t.ts';
import type { TabProps } from './tab.ts';

const everyMs = 5_000;

/** Messages from the device that were rejected, and logins with its uuid that were refused. */
export function RefusedTab({ uuid, senses }: TabProps) {
  const load = async (signal: AbortSignal) => {
    const [rejections, logins] = await Promise.all([
      listRejections(uuid, signal),
      listRefusedLogins(uuid, signal),
    ]);
    return { rejections, logins };
  };
  const query = useQuery(`refused/${uuid}`, load, { everyMs });
  return (
    <Answered query={query}>
      {({ rejections, logins }) =>
        rejections.length + logins.length === 0 ? (
          <Empty
            icon="check"
            title={t('device.noRejections')}
            hint={t('device.noRejectionsHint')}
          />
        ) : (
          <>
            {logins.length > 0 && (
              <section aria-labelledby="refused-logins">
                <h3 id="refused-logins" class="tab-head">
                  {t('login.title')}
                </h3>
                <RefusedLogins logins={logins} />
                <p class="tab-foot">
                  <Link to={`devices/${uuid}?tab=access`} class="link">
                    {t('login.toAccess')}
                  </Link>
                </p>
              </section>
            )}
            {rejections.length > 0 && (
              <section aria-labelledby="refused-messages">
                <h3 id="refused-messages" class="tab-head">
                  {t('rejection.title')}
                </h3>
                <Rejections rejections={rejections} senses={senses} uuid={uuid} />
              </section>
            )}
          </>
        )
      }
    </Answered>
  );
}

/** Refused logins: when, from where, why, and what to do about it. */
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
