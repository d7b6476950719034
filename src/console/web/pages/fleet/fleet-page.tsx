import { useEffect } from 'preact/hooks';
import { useQuery } from '../../api/cache.ts';
import {
  type ListedDevice,
  listRemovedLogins,
  pageSize,
  type RemovedLogin,
} from '../../api/devices.ts';
import { here, queryOf } from '../../app/router.ts';
import { CopyText } from '../../parts/copy.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { Answered, Empty, lazyPart } from '../../parts/panel.tsx';
import { Ago } from '../../parts/status.tsx';
import { formatNumber, formatTime } from '../../text/format.ts';
import { count, t } from '../../text/t.ts';
import { SelectionBar } from './act/selection-bar.tsx';
import {
  filterOf,
  FleetChips,
  LabelFilter,
  Menu,
  nameOf,
  OtherFilters,
  SearchField,
  ViewsMenu,
} from './filter.tsx';
import { FleetTable, forgetOtherFilter } from './fleet-table.tsx';
import { JobsPanel } from './jobs.tsx';
import { type FleetAnswer, useFleet } from './use-fleet.ts';

const MoreFilters = lazyPart<{ devices: readonly ListedDevice[] }>(
  async () => (await import('./more-filters.tsx')).MoreFilters,
);

/** All devices, one page at a time: the service filters, sorts and counts. */
export function FleetPage() {
  const filter = filterOf();
  const query = useFleet(filter);
  useEffect(() => forgetOtherFilter(filter), [JSON.stringify(filter)]);
  const counts = query.data?.body.counts;
  if (counts?.all === 0)
    return (
      <>
        <NoDevices />
        <RemovedDevices />
      </>
    );
  const matching = counts?.matching ?? 0;
  return (
    <>
      <div class="head">
        <h1>{t('fleet.title')}</h1>
        <p class="head-links">
          <Link to="map" class="link">
            {t('fleet.map')}
          </Link>
          <Link to="profiles" class="link">
            {t('fleet.profiles')}
          </Link>
          <Link to="actions" class="link">
            {t('jobs.title')}
          </Link>
        </p>
        <Link to="add" class="button button-main head-action">
          <Icon name="plus" />
          {t('nav.add')}
        </Link>
      </div>
      <JobsPanel of="devices" />
      <div class="tools">
        <SearchField />
        <LabelFilter />
        <FleetChips counts={counts} />
        <OtherFilters />
        <Menu key={nameOf(filter)} title={t('filters.title')}>
          {() => <MoreFilters devices={query.data?.body.devices ?? []} />}
        </Menu>
        <ViewsMenu />
      </div>
      <section
        class={query.isOld ? 'panel panel-flush is-old' : 'panel panel-flush'}
        aria-label={t('fleet.title')}
        aria-busy={query.isOld}
      >
        <Answered query={query} lines={8}>
          {(answer) =>
            answer.body.devices.length === 0 ? (
              <NoMatch />
            ) : (
              <>
                <FleetTable devices={answer.body.devices} />
                <PlacedPager answer={answer} isOld={query.isOld} />
              </>
            )
          }
        </Answered>
      </section>
      <RemovedDevices />
      <SelectionBar filter={filter} devices={query.data?.body.devices ?? []} matching={matching} />
    </>
  );
}

function NoMatch() {
  return (
    <Empty icon="search" title={t('fleet.noMatch')} hint={t('fleet.noMatchHint')}>
      <Link to="" class="button">
        {t('fleet.clear')}
      </Link>
    </Empty>
  );
}

/** Before the first device: how to add one. */
function NoDevices() {
  return (
    <>
      <div class="head">
        <h1>{t('fleet.title')}</h1>
      </div>
      <Empty icon="devices" title={t('fleet.empty')} hint={t('fleet.emptyHint')}>
        <Link to="add" class="button button-main">
          <Icon name="plus" />
          {t('nav.add')}
        </Link>
        <div class="empty-more">
          <p class="fine">{t('fleet.simulate')}</p>
          <CopyText
            label={t('fleet.simulate')}
            text={`npm run simulate -- --devices 20 --seconds 30 --url ${location.origin}`}
          />
        </div>
      </Empty>
    </>
  );
}

/** The service writes the refusals of one uuid at most once a minute. */
const everyMs = 60_000;

/** Removed devices that still try to log in; nothing if there are none. */
function RemovedDevices() {
  const { data: logins = [] } = useQuery('removed-logins', listRemovedLogins, { everyMs });
  const devices = [...Map.groupBy(logins, ({ deviceAuthUuid }) => deviceAuthUuid).values()];
  if (devices.length === 0) return null;
  return (
    <details class="panel removed">
      <summary>{count('removed.title', devices.length)}</summary>
      <p class="fine">{t('removed.hint')}</p>
      <ul class="rejections">
        {devices.map(
          (of) => of[0] && <Removed key={of[0].deviceAuthUuid} newest={of[0]} of={of} />,
        )}
      </ul>
    </details>
  );
}

function Removed({ newest, of }: { newest: RemovedLogin; of: readonly RemovedLogin[] }) {
  const { deviceAuthUuid: uuid, name, address, removedTs, timestamp } = newest;
  const times = of.reduce((sum, login) => sum + login.count, 0);
  const firstTs = Math.min(...of.map((login) => login.firstTs));
  return (
    <li>
      <p class="rejection-what">
        <strong>{name || t('fleet.unnamed')}</strong>
        <Ago ts={timestamp} />
      </p>
      <p class="fine">
        {address === undefined ? t('login.fromUnknown') : t('login.from', { address })}
        {times > 1 &&
          `, ${t('login.times', { count: formatNumber(times), time: formatTime(firstTs) })}`}
      </p>
      <p class="fine">{t('removed.when', { time: formatTime(removedTs), uuid })}</p>
    </li>
  );
}

/**
 * Which part of the list is shown, with links to the next page and back to the first; Back leads to the previous one.
 * `isOld`: another answer is under way, and this one's cursor does not belong to the new query.
 */
function PlacedPager({ answer, isOld }: { answer: FleetAnswer; isOld: boolean }) {
  const { body, next, before } = answer;
  const shown = body.devices.length;
  const to = (changes: Record<string, string>) => {
    const query = new URLSearchParams(here.value.query);
    for (const name of ['cursor', 'from']) query.delete(name);
    for (const [name, value] of Object.entries(changes)) query.set(name, value);
    const text = query.toString();
    return here.value.path + (text === '' ? '' : `?${text}`);
  };
  return (
    <div class="pager">
      <p class="fine pager-place">
        {t('fleet.place', {
          first: formatNumber(before + 1),
          last: formatNumber(before + shown),
          of: formatNumber(Math.max(body.counts?.matching ?? 0, before + shown)),
        })}
      </p>
      {queryOf('cursor') !== '' && (
        <Link to={to({})} class="button">
          {t('common.first')}
        </Link>
      )}
      {next !== null &&
        (isOld ? (
          <button type="button" class="button" disabled>
            {t('common.next')}
          </button>
        ) : (
          <Link to={to({ cursor: next, from: String(before + pageSize) })} class="button">
            {t('common.next')}
          </Link>
        ))}
    </div>
  );
}

/** Links to the next page and back to the first; Back leads to the previous one. */
export function Pager({ next }: { next: string | null }) {
  const { path, query } = here.value;
  const cursor = query.get('cursor');
  if (next === null && cursor === null) return null;
  const at = (value: string | null) => {
    const changed = new URLSearchParams(query);
    if (value === null) changed.delete('cursor');
    else changed.set('cursor', value);
    const text = changed.toString();
    return path + (text === '' ? '' : `?${text}`);
  };
  return (
    <p class="pager">
      {cursor !== null && (
        <Link to={at(null)} class="button">
          {t('common.first')}
        </Link>
      )}
      {next !== null && (
        <Link to={at(next)} class="button">
          {t('common.next')}
        </Link>
      )}
    </p>
  );
}
