import { listDevices, type FleetFilter } from '../../api/devices.ts';
import { reload, useQuery } from '../../api/cache.ts';
import { useEffect } from 'preact/hooks';
import { queryOf } from '../../app/router.ts';
import { onStream } from '../../app/stream.ts';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { Answered, Empty } from '../../parts/panel.tsx';
import { CopyText } from '../../parts/copy.tsx';
import { t } from '../../text/t.ts';
import { FleetChips } from './fleet-chips.tsx';
import { FleetTable } from './fleet-table.tsx';
import { Pager } from './pager.tsx';
import { SearchField } from './search-field.tsx';

const everyMs = 10_000;

const filterOf = (): FleetFilter => ({
  search: queryOf('search'),
  online: queryOf('online'),
  profile: queryOf('profile'),
  alarm: queryOf('alarm'),
  sort: queryOf('sort') || 'name',
  cursor: queryOf('cursor'),
});

/** All devices, a page at a time: the service filters, sorts and counts. */
export function FleetPage() {
  const filter = filterOf();
  const key = `fleet/${JSON.stringify(filter)}`;
  const query = useQuery(key, (signal) => listDevices(filter, signal), { everyMs });
  useEffect(() => onStream(({ kind }) => kind === 'alarm' && reload('fleet/')), []);
  const counts = query.data?.body.counts;
  if (counts?.all === 0) return <NoDevices />;
  return (
    <>
      <div class="head">
        <h1>{t('fleet.title')}</h1>
        <Link to="add" class="button button-main head-action">
          <Icon name="plus" />
          {t('nav.add')}
        </Link>
      </div>
      <div class="tools">
        <SearchField />
        <FleetChips counts={counts} />
      </div>
      <section class="panel panel-flush" aria-label={t('fleet.title')}>
        <Answered query={query} lines={8}>
          {({ body: { devices }, next }) =>
            devices.length === 0 ? (
              <NoMatch />
            ) : (
              <>
                <FleetTable devices={devices} />
                <Pager next={next} />
              </>
            )
          }
        </Answered>
      </section>
    </>
  );
}

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

function NoMatch() {
  return (
    <Empty icon="search" title={t('fleet.noMatch')} hint={t('fleet.noMatchHint')}>
      <Link to="" class="button">
        {t('fleet.clear')}
      </Link>
    </Empty>
  );
}
