import { effect, signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useQuery } from '../../api/cache.ts';
import { type FleetFilter, getProfile, type ListedDevice, listLabels } from '../../api/devices.ts';
import type { DeviceAction, DeviceList, LatestView } from '../../api/types.ts';
import { here, queryOf, setQuery } from '../../app/router.ts';
import { accountOf } from '../../app/session.ts';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { lazyPart } from '../../parts/panel.tsx';
import { formatNumber, formatTyped } from '../../text/format.ts';
import { type Key, t } from '../../text/t.ts';

type Counts = NonNullable<DeviceList['counts']>;
type Chip = {
  key: Key;
  filter: Record<string, string>;
  count: keyof Counts;
  isBad?: boolean;
  isRare?: boolean;
};

const chips: Chip[] = [
  { key: 'fleet.all', filter: {}, count: 'within' },
  { key: 'fleet.inAlarm', filter: { alarm: 'open' }, count: 'alarm', isBad: true },
  { key: 'fleet.refused', filter: { refused: 'true' }, count: 'refused', isBad: true },
  { key: 'fleet.online', filter: { presence: 'online' }, count: 'online' },
  { key: 'fleet.offline', filter: { presence: 'offline' }, count: 'offline' },
  {
    key: 'fleet.intermittent',
    filter: { presence: 'intermittent' },
    count: 'intermittent',
    isRare: true,
  },
  { key: 'fleet.muted', filter: { muted: 'true' }, count: 'muted' },
  { key: 'fleet.pending', filter: { profile: 'pending' }, count: 'pendingProfile' },
];
const names = ['presence', 'online', 'profile', 'alarm', 'refused', 'muted'];

/** How many devices there are of each kind; each is a filter in the URL. */
export function FleetChips({ counts }: { counts: Counts | undefined }) {
  return (
    <nav class="chips" aria-label={t('fleet.filter')}>
      {chips.map(({ key, filter, count, isBad, isRare }) => {
        const number = counts?.[count];
        const isOn = names.every((name) => (filter[name] ?? '') === queryOf(name));
        // Most accounts have no such device, and nobody would look for one here.
        if (isRare && !number && !isOn) return null;
        return (
          <Link
            key={key}
            to={linkTo(filter)}
            class={isBad && number ? 'chip chip-bad' : 'chip'}
            aria-current={isOn ? 'true' : undefined}
          >
            {isBad && number ? <Icon name="warn" /> : null}
            {t(key as 'fleet.all')}
            {number !== undefined && <span class="chip-count">{formatNumber(number)}</span>}
          </Link>
        );
      })}
    </nav>
  );
}

/** Filters that no chip has and that a link led to, each with a button that drops it. */
export function OtherFilters() {
  const { profile, ...of } = filterOf();
  return (
    <>
      {profile !== '' && profile !== 'pending' && (
        <Only text={sayProfile(profile)} name="profile" drop={t('alarms.dropFilter')} />
      )}
      {profile !== '' && !isProfile(profile) && <OneProfile key={profile} pId={profile} />}
      {narrower
        .filter((name) => of[name] !== '')
        .map((name) => (
          <Only
            key={name}
            text={sayNarrower(name, of[name])}
            name={name}
            drop={t('alarms.dropFilter')}
          />
        ))}
    </>
  );
}

/** How something that a filter names by number is called. */
type Called = { name: string; unit?: string | undefined };

/** By sId, and by puId:stId: what the list has shown. Null: not the same on all devices. */
const called = signal<ReadonlyMap<string, Called | null>>(new Map());

/** They go with whom they belong to. */
effect(() => {
  accountOf();
  called.value = new Map();
});

/** Takes in how the senses and the states of the devices on the screen are called. */
export function learnNames(
  devices: readonly ListedDevice[],
  latest: readonly LatestView[] = [],
): void {
  const seen = new Map<string, Called | null>();
  const learn = (id: string, one: Called) => {
    const known = seen.get(id);
    const isSame = known === undefined || (known?.name === one.name && known.unit === one.unit);
    seen.set(id, isSame ? one : null);
  };
  for (const { sId, name, unit } of latest) if (name) learn(sId, { name, unit });
  for (const { state, stateName } of devices)
    if (stateName) learn(`${state.puId}:${state.stId}`, { name: stateName });
  called.value = new Map([...called.peek(), ...seen]);
}

const narrower = ['state', 'value', 'beyond', 'swVersion'] as const;

function sayNarrower(name: (typeof narrower)[number], text: string): string {
  if (name === 'state') return t('fleet.inState', { state: called.value.get(text)?.name ?? text });
  if (name === 'swVersion') return t('filters.isVersion', { version: text });
  if (name === 'beyond') return t('filters.beyond');
  const { sId = text, than = 'gt', number = 0 } = valueOf(text) ?? {};
  const { name: sense = sId, unit } = called.value.get(sId) ?? {};
  return `${sense} ${t(`filters.${than}`)} ${formatTyped(number, { unit })}`;
}

type ValueFilter = { sId: string; than: 'gt' | 'lt'; number: number };

/** The parts of `0x10:gt:8`; null if it is something else. */
export function valueOf(text: string): ValueFilter | null {
  const [, sId = '', than, number] = /^(.+):(gt|lt):(.+)$/.exec(text) ?? [];
  return than === undefined ? null : { sId, than: than as 'gt' | 'lt', number: Number(number) };
}

type OnlyProps = { text: string; name: string; drop: string };

/** Says what a parameter of the URL restricts a list to, and drops it. */
export function Only({ text, name, drop }: OnlyProps) {
  return (
    <p class="only">
      <span>{text}</span>
      <button
        type="button"
        class="button"
        onClick={() => setQuery({ [name]: '', cursor: '', from: '' })}
      >
        {drop}
      </button>
    </p>
  );
}

const sayProfile = (profile: string) =>
  isProfile(profile)
    ? t(`fleet.profile.${profile}`)
    : t('fleet.profile.is', { name: called.value.get(profile)?.name ?? profile });

/** A profile by its identifier: asks what its purposes are called. */
function OneProfile({ pId }: { pId: string }) {
  const { data } = useQuery(`profile/${pId}`, (signal) => getProfile(pId, signal));
  useEffect(() => {
    const name = data?.map(({ name, puId }) => name || t('watch.purpose', { puId })).join(', ');
    if (name) called.value = new Map([...called.peek(), [pId, { name }]]);
  }, [data]);
  return null;
}

const isProfile = (text: string): text is 'pending' | 'current' | 'none' =>
  ['pending', 'current', 'none'].includes(text);

const Views = lazyPart<Record<string, never>>(async () => (await import('./views.tsx')).Views);

/** The named views of the list. */
export const ViewsMenu = () => <Menu title={t('views.title')}>{() => <Views />}</Menu>;

/** What is needed now and then, so that its script is loaded when it is opened. */
export function Menu({ title, children }: { title: string; children: () => ComponentChildren }) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details class="menu" onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
      <summary class="chip">{title}</summary>
      {isOpen && <div class="menu-content">{children()}</div>}
    </details>
  );
}

/** Keeps the search, the label and the sorting. */
function linkTo(filter: Record<string, string>): string {
  const query = new URLSearchParams(here.value.query);
  for (const name of [...names, 'cursor', 'from']) query.delete(name);
  for (const [name, value] of Object.entries(filter)) query.set(name, value);
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
}

/** The labels of devices, and how many devices have each. */
export const useLabels = () => useQuery('labels', listLabels);

/** Filters by a label; hidden if there are no labels. */
export function LabelFilter() {
  const { data: labels = [] } = useLabels();
  const chosen = queryOf('label');
  if (labels.length === 0 && chosen === '') return null;
  const isKnown = chosen === '' || labels.some(({ label }) => label === chosen);
  return (
    <label class="label-filter">
      <span class="hidden">{t('fleet.label')}</span>
      <select
        value={chosen}
        onChange={({ currentTarget }) =>
          setQuery({ label: currentTarget.value, cursor: '', from: '' })
        }
      >
        <option value="">{t('fleet.anyLabel')}</option>
        {!isKnown && <option value={chosen}>{chosen}</option>}
        {labels.map(({ label, devices }) => (
          <option key={label} value={label}>
            {`${label} (${formatNumber(devices)})`}
          </option>
        ))}
      </select>
    </label>
  );
}

const pauseMs = 200;

/** Searches while somebody types. The URL follows, and Back leads to the state before the search. */
export function SearchField({ label = t('fleet.search') }: { label?: string }) {
  const inUrl = queryOf('search');
  const [text, setText] = useState(inUrl);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const asked = useRef(inUrl);
  // Changed from elsewhere: by Back, or by a link that shows everything.
  useEffect(() => {
    if (inUrl !== asked.current) setText(inUrl);
    asked.current = inUrl;
  }, [inUrl]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const change = (next: string) => {
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      const search = next.trim();
      const isRefined = asked.current !== '' && search !== '';
      asked.current = search;
      setQuery({ search, cursor: '', from: '' }, { replace: isRefined });
    }, pauseMs);
  };
  return (
    <label class="search">
      <span class="hidden">{label}</span>
      <Icon name="search" />
      <input
        type="search"
        value={text}
        placeholder={label}
        autocomplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => change(currentTarget.value)}
      />
    </label>
  );
}

/** The filters that are in the URL. */
const filterNames = [
  'search',
  'presence',
  'online',
  'profile',
  'alarm',
  'refused',
  'muted',
  'label',
  'state',
  'value',
  'beyond',
  'swVersion',
] as const;

export const filterOf = (): FleetFilter => ({
  search: queryOf('search'),
  presence: queryOf('presence'),
  online: queryOf('online'),
  profile: queryOf('profile'),
  alarm: queryOf('alarm'),
  refused: queryOf('refused'),
  muted: queryOf('muted'),
  label: queryOf('label'),
  state: queryOf('state'),
  value: queryOf('value'),
  beyond: queryOf('beyond'),
  swVersion: queryOf('swVersion'),
  sort: queryOf('sort') || 'name',
  cursor: queryOf('cursor'),
});

/** The same for an action, without sorting and page. */
export function toDeviceFilter(filter: FleetFilter): NonNullable<DeviceAction['filter']> {
  const given = filterNames
    .filter((name) => filter[name] !== '')
    .map((name) => [name, isFlag(name) ? filter[name] === 'true' : filter[name]] as const);
  return Object.fromEntries(given);
}

const isFlag = (name: string) => ['online', 'refused', 'muted', 'beyond'].includes(name);

/** A filter as text; filters that match the same devices have the same text. */
export const nameOf = (filter: FleetFilter): string => JSON.stringify(toDeviceFilter(filter));

/** Which devices a filter matches, in words. */
export function describeFilter({ search, label, ...of }: FleetFilter): string {
  const parts = [
    search !== '' && `“${search}”`,
    label !== '' && `${t('fleet.label')}: ${label}`,
    of.alarm !== '' && t('fleet.inAlarm'),
    of.refused !== '' && t('fleet.refused'),
    of.muted !== '' && t('fleet.muted'),
    of.online === 'true' && t('fleet.online'),
    of.online === 'false' && t('fleet.offline'),
    isPresence(of.presence) && t(`fleet.${of.presence}`),
    of.profile !== '' && sayProfile(of.profile),
    ...narrower.map((name) => of[name] !== '' && sayNarrower(name, of[name])),
  ].filter((part) => part !== false);
  return parts.length === 0 ? t('fleet.every') : t('fleet.everyWith', { filter: parts.join(', ') });
}

const isPresence = (text: string): text is 'online' | 'offline' | 'intermittent' =>
  ['online', 'offline', 'intermittent'].includes(text);
