import { useEffect } from 'preact/hooks';
import { reload, useQuery } from '../../api/cache.ts';
import { listAlarms } from '../../api/events.ts';
import { useLatest } from '../../api/measurements.ts';
import type { ListedAlarm } from '../../api/types.ts';
import { here, queryOf, setQuery } from '../../app/router.ts';
import { onStream, openAlarms } from '../../app/stream.ts';
import { throttle } from '../../app/throttle.ts';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { Answered, Empty } from '../../parts/panel.tsx';
import { Chips } from '../../parts/status.tsx';
import { formatTime } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { Pager } from '../fleet/fleet-page.tsx';
import { AlarmCard } from './alarm-card.tsx';

const states = ['open', 'acknowledged', 'closed'] as const;

const everyMs = 15_000;

/** The alarms of all devices, open ones first: they need somebody to act. */
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

/** Another state, for the same devices. */
function linkTo(state: string): string {
  const query = new URLSearchParams(here.value.query);
  query.delete('cursor');
  if (state === '') query.delete('state');
  else query.set('state', state);
  const text = query.toString();
  return text === '' ? 'alarms' : `alarms?${text}`;
}

/** Which devices: one that a link led to, or those with a label. */
function AlarmFilters({ alarms }: { alarms: readonly ListedAlarm[] }) {
  const device = queryOf('device');
  const label = queryOf('label');
  if (device !== '')
    return <Only text={t('alarms.ofDevice', { device: nameOf(device, alarms) })} name="device" />;
  if (label !== '') return <Only text={t('alarms.ofLabel', { label })} name="label" />;
  return (
    <label class="search alarm-label">
      <span class="hidden">{t('alarms.label')}</span>
      <Icon name="search" />
      <input
        type="search"
        placeholder={t('alarms.label')}
        autocomplete="off"
        spellcheck={false}
        // The service compares whole labels, so wait until the label is complete.
        onChange={({ currentTarget }) =>
          setQuery({ label: currentTarget.value.trim(), cursor: '' })
        }
      />
    </label>
  );
}

function nameOf(uuid: string, alarms: readonly ListedAlarm[]): string {
  return alarms.find(({ deviceAuthUuid }) => deviceAuthUuid === uuid)?.deviceName || uuid;
}

function Only({ text, name }: { text: string; name: 'device' | 'label' }) {
  return (
    <p class="only">
      <span>{text}</span>
      <button type="button" class="button" onClick={() => setQuery({ [name]: '', cursor: '' })}>
        {t('alarms.dropFilter')}
      </button>
    </p>
  );
}

type NoneProps = { state: 'open' | 'acknowledged' | 'closed'; isOfAll: boolean };

/** The list is empty: says what that means. */
function NoAlarms({ state, isOfAll }: NoneProps) {
  // The filters above can be removed.
  if (!isOfAll) return <Empty icon="search" title={t('alarms.noMatch')} />;
  if (state === 'open') return <Quiet />;
  const title = t(state === 'closed' ? 'alarms.noClosed' : 'alarms.noAcknowledged');
  return <Empty icon="alarm" title={title} />;
}

/** No open alarms; but mentions acknowledged ones that still last. */
function Quiet() {
  const acknowledged = useQuery('alarms/in-hand', (signal) =>
    listAlarms({ state: 'acknowledged', limit: 1 }, signal),
  );
  const closed = useQuery('alarms/last', (signal) =>
    listAlarms({ state: 'closed', limit: 100 }, signal),
  );
  if (acknowledged.data?.body.alarms.length)
    return (
      <Empty icon="check" title={t('alarms.inHand')} hint={t('alarms.inHandHint')}>
        <Link to="alarms?state=acknowledged" class="button">
          {t('alarms.toAcknowledged')}
        </Link>
      </Empty>
    );
  const since = Math.max(...(closed.data?.body.alarms ?? []).map(({ closedTs }) => closedTs ?? 0));
  const title = since > 0 ? t('alarms.quietSince', { time: formatTime(since) }) : t('alarms.quiet');
  return <Empty icon="check" title={title} hint={t('alarms.quietHint')} />;
}

/** The alarms of many devices (`hasDevice`), or of one. One query reads all their senses. */
export function AlarmList({ alarms, hasDevice = false }: ListProps) {
  const uuids = [...new Set(alarms.map(({ deviceAuthUuid }) => deviceAuthUuid))];
  const { data } = useLatest(uuids);
  const latest = data && Map.groupBy(data, ({ deviceAuthUuid }) => deviceAuthUuid);
  return (
    <ul class="alarms">
      {alarms.map((alarm) => (
        <AlarmCard
          key={alarm.alarmId}
          alarm={alarm}
          hasDevice={hasDevice}
          latest={latest && (latest.get(alarm.deviceAuthUuid) ?? [])}
        />
      ))}
    </ul>
  );
}

type ListProps = { alarms: readonly ListedAlarm[]; hasDevice?: boolean };
