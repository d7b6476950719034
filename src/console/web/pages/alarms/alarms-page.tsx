import { useEffect } from 'preact/hooks';
import { reload, useQuery } from '../../api/cache.ts';
import { countWatched, type Watched } from '../../api/devices.ts';
import { listAlarms, toFilter } from '../../api/events.ts';
import type { AlarmGroup, ListedAlarm } from '../../api/types.ts';
import { here, hereWith, queryOf, setQuery } from '../../app/router.ts';
import { onStream, openAlarms } from '../../app/stream.ts';
import { throttle } from '../../app/throttle.ts';
import { Link } from '../../parts/link.tsx';
import { Answered, Problem, Empty } from '../../parts/panel.tsx';
import { Chips } from '../../parts/status.tsx';
import { formatNumber, formatTime } from '../../text/format.ts';
import { count, t } from '../../text/t.ts';
import { LabelFilter, Only, SearchField, ViewsMenu } from '../fleet/filter.tsx';
import { Pager } from '../fleet/fleet-page.tsx';
import { JobsPanel } from '../fleet/jobs.tsx';
import { AlarmList } from './alarm-list.tsx';
import { clearPicked } from './selection.tsx';
import { Told } from './told.tsx';

const states = ['open', 'acknowledged', 'closed'] as const;

const everyMs = 15_000;

/** The alarms of all devices, open ones first: they need somebody to act. */
export function AlarmsPage() {
  const asked = queryOf('state');
  const state = states.find((each) => each === asked) ?? 'open';
  const device = queryOf('device');
  const label = queryOf('label');
  const [search, event, group] = [queryOf('search'), queryOf('event'), queryOf('group')];
  const notification = queryOf('notification');
  const [sort, cursor] = [queryOf('sort'), queryOf('cursor')];
  const which = { state, device, label, search, event, notification };
  const filter = { ...which, sort, group, cursor, limit: 50 };
  const load = (signal: AbortSignal) =>
    listAlarms(state === 'open' ? { ...filter, told: 'true' } : filter, signal);
  const query = useQuery(`alarms/${JSON.stringify(filter)}`, load, { everyMs });
  useEffect(() => {
    const again = throttle(() => reload('alarms/'), 1_000);
    return onStream(({ kind }) => {
      if (kind === 'alarm') again();
    });
  }, []);
  // Which alarms, in whatever order: what was selected among others goes.
  const key = JSON.stringify(which);
  useEffect(() => clearPicked, [key]);
  const isOfAll = [device, label, search, event, notification].every((each) => each === '');
  const found = query.data?.body.total;
  return (
    <>
      <div class="head">
        <h1>{t('alarms.title')}</h1>
      </div>
      <JobsPanel of="alarms" />
      <div class="tools">
        <Chips
          label={t('alarms.filter')}
          chips={states.map((each) => ({
            label: t(`alarms.${each}`),
            to: linkTo(each === 'open' ? '' : each),
            isOn: each === state,
            count:
              each === state ? found : each === 'open' && isOfAll ? openAlarms.value : undefined,
          }))}
        />
        <AlarmFilters alarms={query.data?.body.alarms ?? []} />
        <ViewsMenu />
      </div>
      <Answered query={query}>
        {({ body: { alarms, groups, total, told }, next }) => (
          <>
            {told && <Told {...told} />}
            {groups && event === '' && <Groups groups={groups} />}
            {alarms.length === 0 ? (
              <NoAlarms which={which} isOfAll={isOfAll && found === 0} />
            ) : (
              <AlarmList key={key} alarms={alarms} found={{ filter: toFilter(which), total }} />
            )}
            <Pager next={next} />
          </>
        )}
      </Answered>
    </>
  );
}

/** Another state, for the same devices. */
function linkTo(state: string): string {
  const query = new URLSearchParams(here.value.query);
  query.delete('cursor');
  if (state === '') query.delete('state');
  else query.set('state', state);
  const text = query.toString();
  return text === '' ? 'alarms' : `alarms?${text}`;
}

const sorts = ['', 'oldest', 'severity', 'worst', 'name'] as const;
const groupings = ['', 'event', 'label'] as const;

type ChoiceProps = {
  name: string;
  label: string;
  options: readonly { value: string; text: string }[];
};

/** A parameter of the URL; the first option is its absence. */
function Choice({ name, label, options }: ChoiceProps) {
  return (
    <label class="label-filter">
      <span class="hidden">{label}</span>
      <select
        value={queryOf(name)}
        onChange={({ currentTarget }) => setQuery({ [name]: currentTarget.value, cursor: '' })}
      >
        {options.map(({ value, text }) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The matching alarms by event or label, the worst and largest group first; each is a filter. */
function Groups({ groups }: { groups: readonly AlarmGroup[] }) {
  const by = queryOf('group') === 'label' ? 'label' : 'event';
  return (
    <section class="panel panel-flush" aria-label={t('alarms.group')}>
      <ul class="alarm-rows">
        {groups.map(({ name, total, severity, beganTs }) => (
          <li key={name} class="alarm-group">
            {name === '' ? (
              // No filter means devices without a label.
              <span>{t('alarms.noLabel')}</span>
            ) : (
              <Link to={hereWith({ [by]: name, group: '', cursor: '' })} class="link">
                {name}
              </Link>
            )}
            <strong>{formatNumber(total)}</strong>
            <span class="muted">{t(`severity.${severity}`)}</span>
            <span class="alarm-row-time">
              {t('alarms.groupSince', { time: formatTime(beganTs) })}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Which devices: one that a link led to, or those with a label. */
function AlarmFilters({ alarms }: { alarms: readonly ListedAlarm[] }) {
  const device = queryOf('device');
  if (device !== '')
    return (
      <Only
        text={t('alarms.ofDevice', { device: nameOf(device, alarms) })}
        name="device"
        drop={t('alarms.dropFilter')}
      />
    );
  return (
    <>
      <SearchField label={t('alarms.search')} />
      <LabelFilter />
      <Choice
        name="sort"
        label={t('alarms.sort')}
        options={sorts.map((each) => ({
          value: each,
          text: t(each === '' ? 'alarms.sort.newest' : `alarms.sort.${each}`),
        }))}
      />
      <Choice
        name="group"
        label={t('alarms.group')}
        options={groupings.map((each) => ({
          value: each,
          text: t(each === '' ? 'alarms.group.none' : `alarms.group.${each}`),
        }))}
      />
      {queryOf('notification') !== '' && (
        <Only text={t('alarms.ofMessage')} name="notification" drop={t('alarms.dropFilter')} />
      )}
      {queryOf('event') !== '' && (
        <Only text={queryOf('event')} name="event" drop={t('alarms.dropFilter')} />
      )}
    </>
  );
}

function nameOf(uuid: string, alarms: readonly ListedAlarm[]): string {
  return alarms.find(({ deviceAuthUuid }) => deviceAuthUuid === uuid)?.deviceName || uuid;
}

type NoneProps = {
  which: Omit<Parameters<typeof listAlarms>[0], 'limit'> & { state: (typeof states)[number] };
  isOfAll: boolean;
};

/** The list is empty: says what that means. */
function NoAlarms({ which, isOfAll }: NoneProps) {
  const { state } = which;
  // The filters above can be removed.
  if (!isOfAll && state === 'open') return <NoneOpen which={which} />;
  if (!isOfAll) return <Empty icon="search" title={t('alarms.noMatch')} />;
  if (state === 'open') return <Quiet />;
  const title = t(state === 'closed' ? 'alarms.noClosed' : 'alarms.noAcknowledged');
  return <Empty icon="alarm" title={title} />;
}

/** No open alarms of these; but those that are acknowledged still last. */
function NoneOpen({ which }: Pick<NoneProps, 'which'>) {
  const acknowledged = useQuery(`alarms/in-hand/${JSON.stringify(which)}`, (signal) =>
    listAlarms({ ...which, state: 'acknowledged', limit: 1 }, signal),
  );
  const last = acknowledged.data?.body.total ?? 0;
  if (last === 0) return <Empty icon="search" title={t('alarms.noMatch')} />;
  return (
    <Empty icon="check" title={t('alarms.inHand')} hint={count('alarms.last', last)}>
      <Link to={linkTo('acknowledged')} class="button">
        {t('alarms.toAcknowledged')}
      </Link>
    </Empty>
  );
}

/** No open alarms; but mentions acknowledged ones that still last. */
function Quiet() {
  const acknowledged = useQuery('alarms/in-hand', (signal) =>
    listAlarms({ state: 'acknowledged', limit: 1 }, signal),
  );
  const closed = useQuery('alarms/last', (signal) =>
    listAlarms({ state: 'closed', limit: 100 }, signal),
  );
  const watched = useQuery('alarms/watched', countWatched);
  const fleet = watched.data;
  if (acknowledged.data?.body.alarms.length)
    return (
      <Empty icon="check" title={t('alarms.inHand')} hint={t('alarms.inHandHint')}>
        <Link to="alarms?state=acknowledged" class="button">
          {t('alarms.toAcknowledged')}
        </Link>
      </Empty>
    );
  if (!fleet) return watched.error === undefined ? null : <Problem error={watched.error} />;
  if (fleet.watched === 0)
    return (
      <Empty
        icon="alarm"
        title={t('alarms.unwatched')}
        {...(fleet.unwatched === 0 ? { hint: t('alarms.noDevices') } : {})}
      >
        <Unwatched fleet={fleet} />
        <Link to="" class="button">
          {t('app.toFleet')}
        </Link>
      </Empty>
    );
  const since = Math.max(...(closed.data?.body.alarms ?? []).map(({ closedTs }) => closedTs ?? 0));
  const title = since > 0 ? t('alarms.quietSince', { time: formatTime(since) }) : t('alarms.quiet');
  return (
    <Empty icon="check" title={title} hint={count('alarms.watched', fleet.watched)}>
      <Unwatched fleet={fleet} />
    </Empty>
  );
}

/** What nobody would hear of, whatever happened: each is a filter of the devices. */
function Unwatched({ fleet }: { fleet: Watched }) {
  const { unwatched, pending, away, refused } = fleet;
  const lines = [
    { number: unwatched, stem: 'alarms.withoutLimits', to: '?profile=none' },
    { number: pending, stem: 'alarms.pendingProfile', to: '?profile=pending' },
    { number: away, stem: 'alarms.notConnected', to: '?presence=offline' },
    { number: refused, stem: 'alarms.refused', to: '?refused=true' },
  ] as const;
  return (
    <ul class="empty-list">
      {lines
        .filter(({ number }) => number > 0)
        .map(({ number, stem, to }) => (
          <li key={stem}>
            <Link to={to} class="link">
              {count(stem, number)}
            </Link>
          </li>
        ))}
    </ul>
  );
}
