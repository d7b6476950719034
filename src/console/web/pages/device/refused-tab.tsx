import { useQuery } from '../../api/cache.ts';
import { listRefusedLogins } from '../../api/device.ts';
import { listRejections } from '../../api/devices.ts';
import { Link } from '../../parts/link.tsx';
import { Answered, Empty } from '../../parts/panel.tsx';
import { RefusedLogins } from '../../parts/refused-logins.tsx';
import { Rejections } from '../../parts/rejections.tsx';
import { t } from '../../text/t.ts';
import type { TabProps } from './tab.ts';

const everyMs = 5_000;

/** What was refused: what the device sent, and logins with its name. */
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
