import { useQuery } from '../../api/cache.ts';
import { getConfiguration } from '../../api/devices.ts';
import type { DescribedDevice, Purpose } from '../../api/types.ts';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { Answered } from '../../parts/panel.tsx';
import { t } from '../../text/t.ts';
import { isAllOf, noRules, rulesIn } from './rules.ts';
import { WatchForm } from './watch-form.tsx';
import { WhoIsTold } from './who-is-told.tsx';

/** The simplest alarms of a device: its values beyond limits, and silence. */
export function WatchPage({ uuid }: { uuid: string }) {
  const query = useQuery(`configuration/${uuid}`, (signal) => getConfiguration(uuid, signal));
  return (
    <>
      <p class="crumb">
        <Link to={`devices/${uuid}`} class="link">
          <Icon name="back" />
          {t('watch.back')}
        </Link>
      </p>
      <div class="head">
        <h1>{t('watch.title')}</h1>
      </div>
      <Answered query={query} lines={6}>
        {(device) => {
          const purposes = purposesOf(device);
          const rules = purposes.length === 0 ? noRules : rulesIn(purposes);
          const isAll = rules !== null && isAllOf(rules, purposes);
          return (
            <div class="watch">
              <WatchForm
                uuid={uuid}
                name={device.device.name ?? ''}
                senses={device.module.flatMap(({ senses }) => senses)}
                rules={rules ?? noRules}
                replaces={isAll ? [] : purposes}
              />
              <WhoIsTold />
            </div>
          );
        }}
      </Answered>
    </>
  );
}

/** What was installed last, whether the device has taken it or not. */
function purposesOf({ currentProfile, pendingProfile }: DescribedDevice): Purpose[] {
  if ('purposes' in pendingProfile) return pendingProfile.purposes;
  return 'purposes' in currentProfile ? currentProfile.purposes : [];
}
