import type { BacktestLine } from '../../api/types.ts';
import { Link } from '../../parts/link.tsx';
import { formatDuration, formatNumber, formatTime } from '../../text/format.ts';
import { count, t } from '../../text/t.ts';
import type { Span } from '../device/chart/points.ts';
import type { Chosen } from './devices-choice.tsx';
import { pathOf, type Rule, valueAt } from './document.ts';
import { nameOfEvent } from './event-form.tsx';
import { text } from './texts.ts';
import { linesOf, listAlarms, type TriedAlarm } from './tried.ts';

/** What a backtest said of a rule. */
export type Result = {
  lines: readonly BacktestLine[];
  rule: Rule;
  span: Span;
  devices: readonly Chosen[];
  against: 'recorded' | 'stored' | null;
  /** Devices that did not have the rule then: what was recorded of them says nothing about it. */
  without: readonly string[];
};

const mostShown = 50;

type OutcomeProps = {
  result: Result;
  /** The rule has changed since. */
  isOld: boolean;
  /** The device whose values are on the chart. */
  shown: string;
  onShow: (uuid: string) => void;
};

/** What would have happened, and how that differs from what did: on each device, then alarm by alarm. */
export function Outcome({ result, isOld, shown, onShow }: OutcomeProps) {
  const { lines, rule, devices, against, without } = result;
  const isCompared = (uuid: string) => against !== null && !without.includes(uuid);
  const alarms = listAlarms(lines, { puId: rule['puId'], isCompared });
  const numberOf = (...fates: TriedAlarm['fate'][]) =>
    formatNumber(alarms.filter(({ fate }) => fates.includes(fate)).length);
  const isWhole = lines.some(({ kind }) => kind === 'done');
  const caveats = new Set(linesOf(lines, 'device').flatMap((device) => device.caveats));
  return (
    <div class="try-outcome">
      <div role="status">
        {isOld && <p class="fine">{text('try.old')}</p>}
        {!isWhole && <p class="notice">{text('try.cut')}</p>}
        <p>
          <strong>
            {text('try.alarms', { count: numberOf('same', 'candidate', 'moved', null) })}
          </strong>{' '}
          {text('try.firings', { count: formatNumber(linesOf(lines, 'firing').length) })}{' '}
          {against !== null &&
            without.length < devices.length &&
            text(`try.compared.${against}`, {
              more: numberOf('candidate'),
              fewer: numberOf('against'),
              moved: numberOf('moved'),
            })}
        </p>
        {without.length > 0 && (
          <p>
            {devices.length === 1
              ? text('try.notCompared')
              : text('try.without', { devices: count('fleet.devices', without.length) })}
          </p>
        )}
      </div>
      <ul class="try-devices" aria-label={text('try.devices')}>
        {devices.map((device) => (
          <DeviceRow
            key={device.uuid}
            device={device}
            alarms={alarms.filter(({ uuid }) => uuid === device.uuid)}
            firings={linesOf(lines, 'firing').filter(
              ({ deviceAuthUuid }) => deviceAuthUuid === device.uuid,
            )}
            span={result.span}
            isShown={shown === device.uuid}
            onShow={() => onShow(device.uuid)}
          />
        ))}
      </ul>
      {alarms.length > 0 && <AlarmList alarms={alarms} rule={rule} devices={devices} />}
      {caveats.size > 0 && <p class="fine">{text('try.caveats')}</p>}
    </div>
  );
}

type RowProps = {
  device: Chosen;
  alarms: readonly TriedAlarm[];
  firings: readonly { engine: { ts: number } }[];
  span: Span;
  isShown: boolean;
  onShow: () => void;
};

/** A device: what happened when, as a strip, and in numbers. */
function DeviceRow({ device, alarms, firings, span, isShown, onShow }: RowProps) {
  const share = (ts: number) =>
    Math.min(1, Math.max(0, (ts - span.start) / (span.end - span.start)));
  const percent = (of: number) => `${(of * 100).toFixed(2)}%`;
  const places = new Set(firings.map(({ engine }) => percent(share(engine.ts))));
  const left = (fate: TriedAlarm['fate']) => alarms.filter((alarm) => alarm.fate === fate).length;
  const own = alarms.length - left('against');
  return (
    <li class="try-device">
      <button type="button" class="link" aria-pressed={isShown} onClick={onShow}>
        {device.name}
      </button>
      <div class="try-strip" aria-hidden="true">
        {alarms.map(({ from, until, fate, evId, stId }) => {
          const end = until ?? (fate === 'against' ? from : span.end);
          return (
            <span
              key={`${stId}/${evId}/${from}/${fate}`}
              class={`try-bar try-${fate ?? 'same'}`}
              style={{ left: percent(share(from)), width: percent(share(end) - share(from)) }}
            />
          );
        })}
        {[...places].map((at) => (
          <span key={at} class="try-tick" style={{ left: at }} />
        ))}
      </div>
      <span class="fine">
        {[
          count('audit.alarms', own),
          left('candidate') > 0 && text('try.more.candidate', { count: left('candidate') }),
          left('against') > 0 && text('try.more.against', { count: left('against') }),
        ]
          .filter((part) => part !== false)
          .join(' · ')}
      </span>
    </li>
  );
}

type ListProps = { alarms: readonly TriedAlarm[]; rule: Rule; devices: readonly Chosen[] };

/** Around an alarm, when its device's page is opened there. */
const aroundMs = 3_600_000;

function AlarmList({ alarms, rule, devices }: ListProps) {
  const nameOf = ({ stId, evId }: TriedAlarm) => {
    const at = pathOf(rule, { stId, evId });
    return at ? nameOfEvent(valueAt(rule, at) as object as Rule) : t('event.unknown', { id: evId });
  };
  const names = new Map(devices.map(({ uuid, name }) => [uuid, name]));
  return (
    <>
      <ul class="try-list">
        {alarms.slice(0, mostShown).map((alarm) => {
          const { uuid, from, until, fate } = alarm;
          const end = (until ?? from) + aroundMs;
          return (
            <li key={`${uuid}/${alarm.stId}/${alarm.evId}/${from}/${fate}`}>
              <Link
                to={`devices/${uuid}?from=${from - aroundMs}&to=${end}`}
                class="link"
                aria-label={text('try.at', { time: formatTime(from), name: names.get(uuid) ?? '' })}
              >
                {formatTime(from)}
              </Link>{' '}
              {devices.length > 1 && <span>{names.get(uuid)} </span>}
              <strong>{nameOf(alarm)}</strong> <span class="muted">{sayLength(alarm)}</span>{' '}
              {fate !== null && fate !== 'same' && (
                <span class={`tag try-${fate}`}>{sayFate(alarm)}</span>
              )}
            </li>
          );
        })}
      </ul>
      {alarms.length > mostShown && (
        <p class="fine">{text('try.more', { count: formatNumber(alarms.length - mostShown) })}</p>
      )}
    </>
  );
}

function sayLength({ from, until, fate }: TriedAlarm): string {
  if (until !== null) return text('try.lasted', { time: formatDuration(until - from) });
  return fate === 'against' ? '' : text('try.open');
}

function sayFate({ fate, earlierMs }: TriedAlarm): string {
  if (fate === 'candidate' || fate === 'against') return text(`try.only.${fate}`);
  const time = formatDuration(Math.abs(earlierMs));
  return earlierMs < 0 ? text('try.later', { time }) : text('try.earlier', { time });
}
