import { useState } from 'preact/hooks';
import { useQuery } from '../../api/cache.ts';
import { getProfile, listProfilesOf } from '../../api/devices.ts';
import type { ProfileSpan, Sense } from '../../api/types.ts';
import { Answered } from '../../parts/panel.tsx';
import { formatFullTime } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { sayNames } from './tab.ts';
import { Purposes } from './purposes.tsx';

type FormerProps = { uuid: string; senses: ReadonlyMap<string, Sense> };

/** Which profiles were in force on the device before the current one, from when to when, who installed them and why. */
export function FormerProfiles({ uuid, senses }: FormerProps) {
  const query = useQuery(`profiles-of/${uuid}`, (signal) => listProfilesOf(uuid, signal));
  return (
    <Answered query={query}>
      {(spans) => {
        const former = spans.filter(({ untilTs }) => untilTs !== null);
        if (former.length === 0) return <p class="fine">{t('profile.noFormer')}</p>;
        return (
          <ul class="profiles">
            {former.map((span) => (
              <Former key={`${span.pId} ${span.fromTs}`} span={span} senses={senses} />
            ))}
          </ul>
        );
      }}
    </Answered>
  );
}

function Former({ span, senses }: { span: ProfileSpan; senses: FormerProps['senses'] }) {
  const [isOpen, setIsOpen] = useState(false);
  const { pId, fromTs, untilTs, installedTs, by, reason, purposes } = span;
  const times = { from: formatFullTime(fromTs), until: formatFullTime(untilTs ?? fromTs) };
  return (
    <li>
      <p class="event-title">{sayNames(purposes ?? undefined)}</p>
      <p class="profile-state">{t('profile.inForce', times)}</p>
      <p class="fine">
        {t('profile.installed', { time: formatFullTime(installedTs) })} {t(`profile.by.${by}`)}
        {reason !== undefined && ` ${t('profile.reason', { reason })}`}
      </p>
      {purposes === null ? (
        <p class="fine">{t('profile.forgotten')}</p>
      ) : (
        <details class="more" onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
          <summary>{t('profile.whatItSaid')}</summary>
          {isOpen && <Said pId={pId} senses={senses} />}
        </details>
      )}
    </li>
  );
}

function Said({ pId, senses }: { pId: string; senses: FormerProps['senses'] }) {
  const query = useQuery(`profile/${pId}`, (signal) => getProfile(pId, signal));
  return (
    <Answered query={query}>
      {(purposes) => <Purposes purposes={purposes} senses={senses} now={null} />}
    </Answered>
  );
}
