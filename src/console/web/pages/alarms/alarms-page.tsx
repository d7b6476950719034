import { useEffect } from 'preact/hooks';
import { listAlarms } from '../../api/alarms.ts';
import { reload, useQuery } from '../../api/cache.ts';
import { openAlarms } from '../../app/open-alarms.ts';
import { queryOf } from '../../app/router.ts';
import { onStream } from '../../app/stream.ts';
import { Chips } from '../../parts/chips.tsx';
import { Answered, Empty } from '../../parts/panel.tsx';
import { t } from '../../text/t.ts';
import { Pager } from '../fleet/pager.tsx';
import { AlarmCard } from './alarm-card.tsx';

const states = ['open', 'acknowledged', 'closed'] as const;
type State = (typeof states)[number];

const everyMs = 15_000;

/** Who must act: open alarms first. */
export function AlarmsPage() {
  const asked = queryOf('state');
  const state = states.find((each) => each === asked) ?? 'open';
  const cursor = queryOf('cursor');
  const filter = { state, cursor, device: '', limit: 50 };
  const load = (signal: AbortSignal) => listAlarms(filter, signal);
  const query = useQuery(`alarms/${state}/${cursor}`, load, { everyMs });
  useEffect(() => onStream(({ kind }) => kind === 'alarm' && reload('alarms/')), []);
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
            to: each === 'open' ? 'alarms' : `alarms?state=${each}`,
            isOn: each === state,
            count: each === 'open' ? openAlarms.value : undefined,
          }))}
        />
      </div>
      <Answered query={query}>
        {({ body: { alarms }, next }) =>
          alarms.length === 0 ? (
            <None state={state} />
          ) : (
            <>
              <ul class="alarms">
                {alarms.map((alarm) => (
                  <AlarmCard key={alarm.alarmId} alarm={alarm} hasDevice />
                ))}
              </ul>
              <Pager next={next} />
            </>
          )
        }
      </Answered>
    </>
  );
}

function None({ state }: { state: State }) {
  if (state === 'open')
    return <Empty icon="check" title={t('alarms.quiet')} hint={t('alarms.quietHint')} />;
  const title = t(state === 'closed' ? 'alarms.noClosed' : 'alarms.noAcknowledged');
  return <Empty icon="alarm" title={title} />;
}
