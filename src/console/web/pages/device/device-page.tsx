import { useEffect, useRef, useState } from 'preact/hooks';
import { reload, revise, useQuery } from '../../api/cache.ts';
import {
  getConfiguration,
  getDevice,
  updateDevice,
  type ListedDevice,
  listRejections,
  mostRejections,
  sensesOf,
  unmuteDevice,
} from '../../api/devices.ts';
import { useLatest } from '../../api/measurements.ts';
import type {
  DescribedDevice,
  LatestView,
  ListedAlarm,
  OneDevice,
  Sense,
} from '../../api/types.ts';
import { clock } from '../../app/now.ts';
import { asLeft, queryOf } from '../../app/router.ts';
import { onStream, readOpenAlarms } from '../../app/stream.ts';
import { Icon } from '../../parts/icon.tsx';
import { BackLink, Link } from '../../parts/link.tsx';
import { Answered, lazyPart, Problem, say } from '../../parts/panel.tsx';
import { describeRejection, unitOf } from '../../parts/rejections.tsx';
import { rhythmOf } from '../../parts/presence.ts';
import { Muted, Status } from '../../parts/status.tsx';
import { formatAgo, formatFullTime, formatTime } from '../../text/format.ts';
import { count, t } from '../../text/t.ts';
import { AlarmList, useAlarmsOf } from '../alarms/alarm-list.tsx';
import { History } from './chart/history.tsx';
import { nameOf } from './chart/points.ts';
import { EventsTab } from './events-tab.tsx';
import { NotificationsTab } from './notifications-tab.tsx';
import { ProfileTab } from './profile-tab.tsx';
import { RefusedTab } from './refused-tab.tsx';
import { type CurrentProfile, type TabProps, toTab } from './tab.ts';
import { Values } from './values.tsx';
import type { Waiting as WaitingPart } from './waiting.tsx';
import { WhyTab } from './why-tab.tsx';

const SettingsTab = lazyPart<TabProps>(
  async () => (await import('./settings/settings-tab.tsx')).SettingsTab,
);
const AccessTab = lazyPart<TabProps>(async () => (await import('./access-tab.tsx')).AccessTab);

const Waiting = lazyPart<Parameters<typeof WaitingPart>[0]>(
  async () => (await import('./waiting.tsx')).Waiting,
);

/** The tabs below the chart. A new tab gets its line here. */
const tabs = [
  { name: 'events', label: 'device.events', Tab: EventsTab },
  { name: 'why', label: 'device.why', Tab: WhyTab },
  { name: 'rejections', label: 'device.rejections', Tab: RefusedTab },
  { name: 'told', label: 'device.told', Tab: NotificationsTab },
  { name: 'profile', label: 'device.profile', Tab: ProfileTab },
  { name: 'settings', label: 'device.settings', Tab: SettingsTab },
  { name: 'access', label: 'device.access', Tab: AccessTab },
] as const;

const everyMs = 10_000;

/** One device: its current values, its history, and why its events fire. */
export function DevicePage({ uuid }: { uuid: string }) {
  const configuration = useQuery(`configuration/${uuid}`, (signal) =>
    getConfiguration(uuid, signal),
  );
  const alarms = useAlarmsOf(uuid);
  const { data: latest } = useLatest([uuid]);
  const senses = configuration.data ? sensesOf(configuration.data) : new Map();
  const profile = configuration.data?.currentProfile;
  return (
    <>
      <BackLink to={asLeft('')}>{t('device.back')}</BackLink>
      <Answered query={configuration} lines={6}>
        {(described) => (
          <>
            <Head
              uuid={uuid}
              name={described.device.name ?? ''}
              latest={latest}
              profile={profile && isInstalled(profile) ? profile : null}
            />
            <Trouble uuid={uuid} senses={senses} latest={latest ?? []} />
            <DeviceAlarms uuid={uuid} {...alarms} />
            <WatchLink uuid={uuid} />
            {isInstalled(described.pendingProfile) && (
              <Waiting
                key={described.pendingProfile.pId}
                pending={described.pendingProfile}
                current={profile && isInstalled(profile) ? profile : null}
                senses={senses}
              />
            )}
            <Values uuid={uuid} senses={senses} />
            <History
              uuid={uuid}
              name={described.device.name ?? ''}
              senses={senses}
              profile={profile && isInstalled(profile) ? profile : null}
            />
            <Tabs>
              {({ Tab }) => (
                <Tab
                  uuid={uuid}
                  configuration={described}
                  senses={senses}
                  purposes={profile && isInstalled(profile) ? profile : null}
                />
              )}
            </Tabs>
          </>
        )}
      </Answered>
    </>
  );
}

const isInstalled = (profile: DescribedDevice['currentProfile']): profile is CurrentProfile =>
  'pId' in profile;

type HeadProps = {
  uuid: string;
  name: string;
  /** Undefined until they are known. */
  latest: readonly LatestView[] | undefined;
  profile: CurrentProfile | null;
};

function Head({ uuid, name, latest, profile }: HeadProps) {
  const key = `device/${uuid}`;
  const { data } = useQuery(key, (signal) => getDevice(uuid, signal), { everyMs });
  useEffect(() => followPresence(key), [key]);
  // It has accepted a profile since the page was opened.
  const current = data?.profiles.find(({ state }) => state === 'current')?.pId;
  useEffect(() => {
    if (current !== undefined && current !== profile?.pId) reload(`configuration/${uuid}`);
  }, [current]);
  const device = data?.device;
  return (
    <div class="head device-head">
      <h1>{name.trim() || t('fleet.unnamed')}</h1>
      {device && (
        <p class="device-seen">
          <Status {...device} {...rhythmOf(latest)} isFull />
          <PurposeState state={device.state} profile={profile} />
          <LimitsFrom from={device.limitsFrom ?? null} />
          {device.mutedUntilTs !== undefined && <Quiet device={device} />}
          {device.labels.map((label) => (
            <span key={label} class="label">
              {label}
            </span>
          ))}
        </p>
      )}
    </div>
  );
}

/** That its limits are those of a label. */
function LimitsFrom({ from }: { from: NonNullable<ListedDevice['limitsFrom']> | null }) {
  if (from === null || from === 'own') return null;
  return <span class="fine">{t('device.limitsFrom', { label: from.label })}</span>;
}

type PurposeStateProps = {
  state: ListedDevice['state'];
  profile: CurrentProfile | null;
};

/** The state that its purpose is in; nothing if there is only one. */
function PurposeState({ state: { puId, stId, ts }, profile }: PurposeStateProps) {
  const purposes = profile?.purposes ?? [];
  const states = purposes.find((purpose) => purpose.puId === puId)?.states ?? [];
  const own = states.filter(({ isGlobal }) => !isGlobal);
  if (profile === null || (own.length < 2 && purposes.length < 2)) return null;
  const text = nameOf({ pId: profile.pId, puId, stId }, profile, (id) => t('chart.state', { id }));
  return (
    <span class="purpose-state" title={formatFullTime(ts)}>
      {t('device.inState', { state: text, time: formatTime(ts) })}
    </span>
  );
}

/** When the stream says to ask again, one device takes no more requests than polling would. */
const followPresence = (key: string): (() => void) =>
  onStream((message) => {
    const isMove = message.kind === 'event' && message.event.type === 'device';
    if (message.kind === 'ask-again' || isMove) reload(key);
    else
      revise<OneDevice>(key, (one) => {
        const device = updateDevice(one.device, message);
        return device === one.device ? one : { ...one, device };
      });
  });

const settlesMs = 5_000;

/** Calls it again while the page above still grows, until somebody scrolls by themselves. Returns what ends it. */
function whileGrowing(run: () => void): () => void {
  const gone = new AbortController();
  const grow = new ResizeObserver(run);
  const end = () => {
    gone.abort();
    grow.disconnect();
  };
  grow.observe(document.body);
  for (const name of ['wheel', 'touchstart', 'pointerdown', 'keydown'])
    addEventListener(name, end, { signal: gone.signal, passive: true });
  const timer = setTimeout(end, settlesMs);
  return () => {
    clearTimeout(timer);
    end();
  };
}

/** Scrolls to a tab that a link leads to, and into view within the strip. */
function showTab(strip: HTMLElement): void {
  const tab = strip.querySelector<HTMLElement>('[aria-current]');
  if (tab) strip.scrollLeft = tab.offsetLeft - (strip.clientWidth - tab.clientWidth) / 2;
  if (strip.getBoundingClientRect().top > innerHeight / 2) strip.parentElement?.scrollIntoView();
}

type TabsProps = {
  children: (tab: (typeof tabs)[number]) => preact.ComponentChildren;
};

function Tabs({ children }: TabsProps) {
  const asked = queryOf('tab');
  const tab = tabs.find(({ name }) => name === asked) ?? tabs[0];
  const strip = useRef<HTMLElement>(null);
  useEffect(() => {
    if (asked === '') return undefined;
    return whileGrowing(() => strip.current && showTab(strip.current));
  }, [asked]);
  return (
    <section class="panel panel-flush tabbed" aria-label={t('device.tabs')}>
      <nav ref={strip} class="tabs" aria-label={t('device.tabs')}>
        {tabs.map(({ name, label }) => (
          <Link
            key={name}
            to={toTab(name)}
            class="tab"
            aria-current={name === tab.name ? 'true' : undefined}
          >
            {t(label)}
          </Link>
        ))}
      </nav>
      <div class="tab-content">{children(tab)}</div>
    </section>
  );
}

const dayMs = 86_400_000;

/** Not refusals: with the first two the values were stored; the others count what follows individual entries. */
const remarks = ['unknown-member', 'events-not-recorded', 'more-of-message', 'more-of-minute'];
const countRejected = (all: readonly { more?: number | undefined }[]) =>
  all.reduce((sum, { more = 0 }) => sum + 1 + more, 0);
const isRefusal = ({ reason }: { reason: string }) => !remarks.includes(reason);

type TroubleProps = {
  uuid: string;
  senses: ReadonlyMap<string, Sense>;
  latest: readonly LatestView[];
};

/** What the device tried and was refused: its login, its newest message, or others of the last day. */
export function Trouble({ uuid, senses, latest }: TroubleProps) {
  const { data } = useQuery(`device/${uuid}`, (signal) => getDevice(uuid, signal), { everyMs });
  const rejections = useQuery(
    `newest-rejections/${uuid}`,
    (signal) => listRejections(uuid, signal),
    { everyMs },
  ).data;
  const refusedTs = data?.device.refusedTs;
  const storedTs = Math.max(0, ...latest.map(({ ts }) => ts));
  const ofDay = rejections?.filter(({ timestamp }) => timestamp > clock.value - dayMs) ?? [];
  const refused = ofDay.filter(isRefusal);
  const [newest] = refused;
  const isRejected = newest && newest.timestamp > storedTs ? newest : null;
  // A number of another unit looks like any other.
  const ofUnit = ofDay.find((rejection) => unitOf(rejection, senses)?.isWrong);
  if (refusedTs === undefined && !newest && !ofUnit) return null;
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
      {newest && !isRejected && (
        <li class="trouble">
          <Icon name="warn" />
          <span>
            {count(
              ofDay.length < mostRejections ? 'trouble.rejected' : 'trouble.rejectedLeast',
              countRejected(refused),
            )}{' '}
            {describeRejection(newest, senses)}
          </span>
          <Link to={toTab('rejections')} class="link">
            {t('trouble.why')}
          </Link>
        </li>
      )}
      {ofUnit && (
        <li class="trouble">
          <Icon name="warn" />
          <span>
            {t('trouble.unit', {
              ago: formatAgo(ofUnit.timestamp),
              what: describeRejection(ofUnit, senses),
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

type DeviceAlarmsProps = { uuid: string; alarms: readonly ListedAlarm[]; total: number };

/** The device's current alarms, above everything else; unacknowledged ones first. */
function DeviceAlarms({ uuid, alarms, total }: DeviceAlarmsProps) {
  const more = total - alarms.length;
  if (total === 0) return null;
  return (
    <>
      <AlarmList alarms={alarms} />
      {more > 0 && (
        <p>
          <Link to={`alarms?device=${uuid}`} class="link">
            {count('device.moreAlarms', more)}
          </Link>
        </p>
      )}
    </>
  );
}

/** Leads from a device to its simplest alarms. */
export function WatchLink({ uuid }: { uuid: string }) {
  return (
    <p class="watch-link">
      <Link to={`watch/${uuid}`} class="link">
        <Icon name="alarm" />
        {t('watch.open')}
      </Link>
    </p>
  );
}

/** Says that a device is muted, until when and why, and can end it. */
export function Quiet({ device }: { device: ListedDevice }) {
  const [error, setError] = useState<unknown>(null);
  const end = async () => {
    setError(null);
    try {
      await unmuteDevice(device.uuid);
      say(t('alarms.done.unmute'));
      reload(`device/${device.uuid}`);
      reload('alarms/');
      await readOpenAlarms();
    } catch (thrown) {
      setError(thrown);
    }
  };
  return (
    <>
      <Muted {...device} />
      <button type="button" class="link" onClick={() => void end()}>
        {t('alarms.unmute')}
      </button>
      {error !== null && <Problem error={error} />}
    </>
  );
}
