import { useState } from 'preact/hooks';
import { useQuery } from '../../api/cache.ts';
import {
  getConfiguration,
  getProfile,
  listDevices,
  listProfiles,
  sensesOf,
} from '../../api/devices.ts';
import type { ListedProfile, Sense } from '../../api/types.ts';
import { asLeft, queryOf } from '../../app/router.ts';
import { BackLink, Link } from '../../parts/link.tsx';
import { Answered, Empty, lazyPart } from '../../parts/panel.tsx';
import { formatFullTime, formatTime } from '../../text/format.ts';
import { profiles as de } from '../../text/de/profiles.ts';
import { profiles as en } from '../../text/en/profiles.ts';
import { count, t, textsOf } from '../../text/t.ts';
import type { Purposes as PurposesPart } from '../device/purposes.tsx';
import { sayNames } from '../device/tab.ts';
import { Pager } from '../fleet/fleet-page.tsx';
import { JobsPanel } from '../fleet/jobs.tsx';
import { LabelLimits } from './label-limits.tsx';

const text = textsOf(en, de);

const Purposes = lazyPart<Parameters<typeof PurposesPart>[0]>(
  async () => (await import('../device/purposes.tsx')).Purposes,
);

const everyMs = 30_000;

/** Which profiles the devices have, and the limits of labels. */
export function ProfilesPage() {
  return (
    <>
      <BackLink to={asLeft('')}>{t('device.back')}</BackLink>
      <div class="head">
        <h1>{t('fleet.profiles')}</h1>
      </div>
      <JobsPanel of="devices" />
      <Installed />
      <LabelLimits />
    </>
  );
}

/** What is installed where: profiles with the same purposes once, the newest first. `none`: what it says if none is. */
export function Installed({ none }: { none?: { title: string; hint: string } }) {
  const cursor = queryOf('cursor');
  const query = useQuery(`profiles/${cursor}`, (signal) => listProfiles(cursor, signal), {
    everyMs,
  });
  return (
    <section class="panel panel-flush" aria-label={t('fleet.profiles')}>
      <Answered query={query} lines={6}>
        {({ body: { profiles }, next }) =>
          profiles.length === 0 ? (
            <Empty
              icon="pulse"
              title={none?.title ?? text('profiles.none')}
              hint={none?.hint ?? t('device.noProfileHint')}
            />
          ) : (
            <>
              <ul class="installed">
                {profiles.map((profile) => (
                  <InstalledProfile key={profile.pId} profile={profile} />
                ))}
              </ul>
              <Pager next={next} />
            </>
          )
        }
      </Answered>
    </section>
  );
}

function InstalledProfile({ profile }: { profile: ListedProfile }) {
  const { pId, purposes, devices, pending, refused, firstInstalledTs, lastInstalledTs } = profile;
  const [isOpen, setIsOpen] = useState(false);
  /** As the filter finds them. */
  const having = devices + pending;
  const said = [
    pending > 0 && text('profiles.pending', { count: pending }),
    refused > 0 && text('profiles.refused', { count: refused }),
  ].filter(Boolean);
  return (
    <li>
      <p class="installed-name">{sayNames(purposes)}</p>
      <p>
        {having > 0 ? (
          <Link to={`?profile=${pId}`} class="link">
            {count('fleet.devices', having)}
          </Link>
        ) : (
          count('fleet.devices', 0)
        )}
        {said.length > 0 && <span class="installed-left"> · {said.join(' · ')}</span>}
      </p>
      <p class="fine" title={formatFullTime(lastInstalledTs)}>
        {firstInstalledTs === lastInstalledTs
          ? text('profiles.at', { time: formatTime(lastInstalledTs) })
          : text('profiles.between', {
              first: formatTime(firstInstalledTs),
              last: formatTime(lastInstalledTs),
            })}
      </p>
      <details class="more" onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
        <summary>{text('profiles.content')}</summary>
        {isOpen && <Content pId={pId} />}
      </details>
    </li>
  );
}

/** Its purposes in words, with the names that one of its devices has for the senses. */
function Content({ pId }: { pId: string }) {
  const query = useQuery(`profile/${pId}`, (signal) => getProfile(pId, signal));
  const { data: senses = new Map<string, Sense>() } = useQuery(
    `profile-senses/${pId}`,
    async (signal) => {
      const { body } = await listDevices({ profile: pId }, signal);
      const [first] = body.devices;
      return first ? sensesOf(await getConfiguration(first.uuid, signal)) : new Map();
    },
  );
  return (
    <Answered query={query}>
      {(purposes) => <Purposes purposes={purposes} senses={senses} now={null} />}
    </Answered>
  );
}
