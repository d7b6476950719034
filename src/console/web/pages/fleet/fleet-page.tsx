import { useEffect } from 'preact/hooks';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { Answered, Empty } from '../../parts/panel.tsx';
import { t } from '../../text/t.ts';
import { SelectionBar } from './act/selection-bar.tsx';
import { filterOf } from './filter.ts';
import { FleetChips } from './filter.tsx';
import { FleetTable } from './fleet-table.tsx';
import { JobsPanel } from './jobs/jobs-panel.tsx';
import { LabelFilter } from './label-filter.tsx';
import { NoDevices } from './no-devices.tsx';
import { PlacedPager } from './placed-pager.tsx';
import { RemovedDevices } from './removed-devices.tsx';
import { SearchField } from './search-field.tsx';
import { forgetOtherFilter } from './selection.ts';
import { useFleet } from './use-fleet.ts';

/** All devices, a page at a time: the service filters, sorts and counts. */
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
        <Link to="add" class="button button-main head-action">
          <Icon name="plus" />
          {t('nav.add')}
        </Link>
      </div>
      <JobsPanel />
      <div class="tools">
        <SearchField />
        <LabelFilter />
        <FleetChips counts={counts} />
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
