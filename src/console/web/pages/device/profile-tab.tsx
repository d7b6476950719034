import { useState } from 'preact/hooks';
import { getDevice } from '../../api/devices.ts';
import { useQuery } from '../../api/cache.ts';
import type { DescribedDevice, OneDevice, Purpose } from '../../api/types.ts';
import { Answered, Empty, lazyPart } from '../../parts/panel.tsx';
import { formatFullTime, formatTime } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import type { FormerProfiles as FormerPart } from './former-profiles.tsx';
import type { Purposes as PurposesPart } from './purposes.tsx';
import { sayNames, type TabProps } from './tab.ts';

type Profile = OneDevice['profiles'][number];

const Purposes = lazyPart<Parameters<typeof PurposesPart>[0]>(
  async () => (await import('./purposes.tsx')).Purposes,
);

const FormerProfiles = lazyPart<Parameters<typeof FormerPart>[0]>(
  async () => (await import('./former-profiles.tsx')).FormerProfiles,
);

const everyMs = 5_000;

/** The device's current profile, and the progress of a newer one. */
export function ProfileTab({ uuid, configuration, senses }: TabProps) {
  const [isPast, setIsPast] = useState(false);
  const query = useQuery(`device/${uuid}`, (signal) => getDevice(uuid, signal), { everyMs });
  const contents = contentsOf(configuration);
  return (
    <>
      <Answered query={query}>
        {({ profiles, device }) => {
          // Profiles from before the current one are history.
          const current = profiles.findIndex(({ state }) => state === 'current');
          const shown = current < 0 ? profiles.slice(0, 5) : profiles.slice(0, current + 1);
          if (shown.length === 0)
            return (
              <Empty icon="pulse" title={t('device.noProfile')} hint={t('device.noProfileHint')} />
            );
          return (
            <ul class="profiles">
              {shown.map((profile) => (
                <li key={profile.pId}>
                  <p class="event-title">{sayNames(contents.get(profile.pId))}</p>
                  <p class={`profile-state profile-${profile.state}`}>
                    {t(`profile.${profile.state}`, { time: formatTime(profile.ts) })}
                  </p>
                  <Hint profile={profile} presence={device.presence} />
                  <p class="fine" title={formatFullTime(profile.installedTs)}>
                    {t('profile.installed', { time: formatTime(profile.installedTs) })}
                    {profile.state === 'current' && ` ${t(`profile.engine.${profile.engine}`)}`}
                  </p>
                  {contents.has(profile.pId) && (
                    <Purposes
                      purposes={contents.get(profile.pId) ?? []}
                      senses={senses}
                      now={profile.state === 'current' ? device.state : null}
                    />
                  )}
                </li>
              ))}
            </ul>
          );
        }}
      </Answered>
      <details
        class="more profiles-former"
        onToggle={({ currentTarget }) => setIsPast(currentTarget.open)}
      >
        <summary>{t('profile.former')}</summary>
        {isPast && <FormerProfiles uuid={uuid} senses={senses} />}
      </details>
    </>
  );
}

type HintProps = { profile: Profile; presence: OneDevice['device']['presence'] };

const waits = {
  online: 'profile.waits',
  offline: 'profile.waitsOffline',
  intermittent: 'profile.waitsIntermittent',
} as const;

/** What it waits for, or what the device answered. */
function Hint({ profile: { state, text }, presence = 'offline' }: HintProps) {
  if (text !== undefined) return <p class="event-why">{t('profile.said', { text })}</p>;
  if (state === 'pending') return <p class="event-why">{t(waits[presence])}</p>;
  return state === 'sent' ? <p class="event-why">{t('profile.waitsAnswer')}</p> : null;
}

/** The purposes of the profiles whose content is known, by pId. */
function contentsOf({ currentProfile, pendingProfile }: DescribedDevice): Map<string, Purpose[]> {
  const known = [currentProfile, pendingProfile].flatMap((each) => ('pId' in each ? [each] : []));
  return new Map(known.map(({ pId, purposes }) => [pId, purposes]));
}
