import { useState } from 'preact/hooks';
import { useQuery } from '../../api/cache.ts';
import { getConfiguration, getProfile, listDevices, sensesOf } from '../../api/devices.ts';
import { getPurpose } from '../../api/rules.ts';
import type { ListedProfile, Purpose, Sense } from '../../api/types.ts';
import { Link } from '../../parts/link.tsx';
import { Answered } from '../../parts/panel.tsx';
import { formatTime } from '../../text/format.ts';
import { count } from '../../text/t.ts';
import { sayChanges } from '../device/changes.ts';
import { text } from './texts.ts';
import { ChangeList } from './versions.tsx';

type InstalledProps = {
  /** Of the stored rule. */
  uuid: string;
  /** What is installed. */
  profiles: readonly ListedProfile[];
};

/** Where a stored rule is installed, since when, and how that differs from what is saved. */
export function InstalledOn({ uuid, profiles: all }: InstalledProps) {
  const { data: rule } = useQuery(`rule/${uuid}`, (signal) => getPurpose(uuid, signal));
  if (!rule) return null;
  const { puId, name = '' } = rule.body;
  const isThis = (one: { puId: number; name?: string }) =>
    one.puId === puId && (one.name ?? '') === name;
  const profiles = all.filter(
    ({ purposes, devices, pending }) => purposes.some(isThis) && devices + pending > 0,
  );
  // There may be others than those that were read, and a rule that was renamed is not known again.
  if (profiles.length === 0) return null;
  return (
    <ul class="fine rule-changes">
      {profiles.map((profile) => (
        <OneProfile key={profile.pId} saved={rule.body} profile={profile} />
      ))}
    </ul>
  );
}

type OneProps = { saved: Purpose; profile: ListedProfile };

function OneProfile({ saved, profile }: OneProps) {
  const { pId, devices, pending, firstInstalledTs } = profile;
  const [isOpen, setIsOpen] = useState(false);
  return (
    <li>
      <Link to={`?profile=${pId}`} class="link">
        {text('installed.on', { devices: count('fleet.devices', devices + pending) })}
      </Link>{' '}
      {text('installed.since', { time: formatTime(firstInstalledTs) })}
      {pending > 0 && ` ${text('installed.waits', { devices: count('fleet.devices', pending) })}`}
      <details class="more" onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
        <summary>{text('installed.compare')}</summary>
        {isOpen && <Compared saved={saved} profile={profile} />}
      </details>
    </li>
  );
}

/** How the saved rule differs from the one that is installed, by the names that a device there has for its sensors. */
function Compared({ saved, profile: { pId } }: OneProps) {
  const query = useQuery(`rule-installed/${pId}`, async (signal) => {
    const [purposes, first] = await Promise.all([
      getProfile(pId, signal),
      listDevices({ profile: pId }, signal),
    ]);
    const [device] = first.body.devices;
    const senses = device ? sensesOf(await getConfiguration(device.uuid, signal)) : noSenses;
    return { purposes, senses };
  });
  return (
    <Answered query={query} lines={1}>
      {({ purposes, senses }) => {
        const installed = purposes.find(({ puId }) => puId === saved.puId);
        const changes = installed ? sayChanges(installed, saved, senses) : [];
        return changes.length === 0 ? (
          <p>{text('installed.same')}</p>
        ) : (
          <ChangeList changes={changes} />
        );
      }}
    </Answered>
  );
}

const noSenses = new Map<string, Sense>();
