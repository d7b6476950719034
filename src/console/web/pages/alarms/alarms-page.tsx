import { useEffect } from 'preact/hooks';
import { listAlarms } from '../../api/alarms.ts';
import { reload, useQuery } from '../../api/cache.ts';
import { openAlarms } from '../../app/open-alarms.ts';
import { here, queryOf } from '../../app/router.ts';
import { onStream } from '../../app/stream.ts';
import { throttle } from '../../app/throttle.ts';
import { Chips } from '../../parts/chips.tsx';
import { Answered } from '../../parts/panel.tsx';
import { t } from '../../text/t.ts';
import { Pager } from '../fleet/pager.tsx';
import { AlarmFilters } from './alarm-filters.tsx';
import { AlarmList } from './alarm-list.tsx';
import { NoAlarms } from './no-alarms.tsx';

const states = ['open', 'acknowledged', 'closed'] as const;

const everyMs = 15_000;

/** Who must act: open alarms first. */
export function AlarmsPage() {
  const asked = queryOf('state');
  const state = states.find((each) => each === asked) ?? 'open';
  const device = queryOf('device');
  const label = queryOf('label');
  const filter = { state, device, label, cursor: queryOf('cursor'), limit: 50 };
  const load = (signal: AbortSignal) => listAlarms(filter, signal);
  const query = useQuery(`alarms/${JSON.stringify(filter)}`, load, { everyMs });
  useEffect(() => {
    const again = throttle(() => reload('alarms/'), 1_000);
    return onStream(({ kind }) => {
      if (kind === 'alarm') again();
    });
  }, []);
  const isOfAll = device === '' && label === '';
  return (
    <>
      <div class="head">
        <h1>{t('alarms.title')}</h1>
      </div>
      <div class="tools">
        <Chips
          label={t('alarms.filter')}
          chips={states.map((each) => ({
            label: t(`alarms.${each}`),
            to: linkTo(each === 'open' ? '' : each),
            isOn: each === state,
            count: each === 'open' && isOfAll ? openAlarms.value : undefined,
          }))}
        />
        <AlarmFilters alarms={query.data?.body.alarms ?? []} />
      </div>
      <Answered query={query}>
        {({ body: { alarms }, next }) => (
          <>
            {alarms.length === 0 ? (
              <NoAlarms state={state} isOfAll={isOfAll} />
            ) : (
              <AlarmList alarms={alarms} hasDevice />
            )}
            <Pager next={next} />
          </>
        )}
      </Answered>
    </>
  );
}

/** Another state, of the same devices. */
function linkTo(state: string): string {
  const query = new URLSearchParams(here.value.query);
  query.delete('cursor');
  if (state === '') query.delete('state');
  else query.set('state', state);
  const text = query.toString();
  return text === '' ? 'alarms' : `alarms?${text}`;
}
