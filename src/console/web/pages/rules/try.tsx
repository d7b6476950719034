import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useQuery } from '../../api/cache.ts';
import { listProfilesOf } from '../../api/devices.ts';
import { listFewPoints } from '../../api/measurements.ts';
import { tryRule } from '../../api/rules.ts';
import type { BacktestLine, Sense } from '../../api/types.ts';
import { now } from '../../app/now.ts';
import type { Played, Values } from '../../engine/play.ts';
import { Answered, Problem, Skeleton } from '../../parts/panel.tsx';
import { formatDuration, formatNumber, formatTime, formatValue } from '../../text/format.ts';
import { count, t } from '../../text/t.ts';
import { Plot, type Scale } from '../device/chart/plot.tsx';
import type { Series, Span } from '../device/chart/points.ts';
import { loadSeries, toPoints } from '../device/chart/series.ts';
import { readCause, type Sentence, writeCause } from './cause.ts';
import {
  groupsOf,
  isOn,
  type Path,
  pathOf,
  type Rule,
  type Selected,
  valueAt,
  withAt,
} from './document.ts';
import { nameOfEvent } from './event-form.tsx';
import { Choice } from './fields.tsx';
import { text } from './texts.ts';

const dayMs = 86_400_000;
const ranges = { day: dayMs, week: 7 * dayMs, month: 30 * dayMs } as const;
type RangeName = keyof typeof ranges;
/** With more values the page does not follow a limit that is moved; the service plays it when it is let go. */
const mostValues = 20_000;

type TryProps = {
  rule: Rule;
  selected: Selected | null;
  /** Whose values are played. */
  uuid: string;
  senses: ReadonlyMap<string, Sense>;
  /** The rule as it is saved; null: it never was. */
  stored: Rule | null;
  onChange: (rule: Rule, key?: string) => void;
};

type Result = { lines: readonly BacktestLine[]; rule: Rule; isCompared: boolean };

/** What the rule would have done on a device, beside what happened; a limit can be moved on the chart. */
export function Try({ rule, selected, uuid, senses, stored, onChange }: TryProps) {
  const [name, setName] = useState<RangeName>('week');
  const [span, setSpan] = useState<Span | null>(null);
  const [result, setResult] = useState<Result | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const gone = useRef<AbortController>(null);
  useEffect(() => () => gone.current?.abort(), []);
  const run = async () => {
    gone.current?.abort();
    const { signal } = (gone.current = new AbortController());
    const end = now();
    const tried = { start: end - ranges[name], end };
    setSpan(tried);
    setBusy(true);
    setError(null);
    try {
      const isCompared =
        stored !== null &&
        stored['puId'] === rule['puId'] &&
        isOn(await listProfilesOf(uuid, signal), stored, tried);
      const lines = await tryRule(rule, { uuids: [uuid], ...tried, isCompared }, signal);
      setResult({ lines, rule, isCompared });
    } catch (thrown) {
      if (!signal.aborted) setError(thrown);
    }
    if (!signal.aborted) setBusy(false);
  };
  return (
    <section class="panel rule-try" aria-labelledby="try">
      <h2 id="try">{text('try.title')}</h2>
      <div class="sentence">
        <Choice
          label={text('try.range')}
          value={name}
          options={(['day', 'week', 'month'] as const).map((each) => [each, text(`try.${each}`)])}
          onChange={setName}
        />
        <button
          type="button"
          class="button button-main"
          disabled={isBusy || uuid === ''}
          onClick={() => void run()}
        >
          {text('try.run')}
        </button>
      </div>
      {error !== null && <Problem error={error} />}
      {isBusy && <Skeleton lines={2} />}
      {result && !isBusy && <Outcome result={result} isOld={result.rule !== rule} />}
      {span && (
        <TryChart
          key={`${uuid}/${span.start}`}
          {...{ rule, selected, uuid, senses, span, onChange }}
        />
      )}
    </section>
  );
}

type LineOf<K extends BacktestLine['kind']> = Extract<BacktestLine, { kind: K }>;

const linesOf = <K extends BacktestLine['kind']>(lines: readonly BacktestLine[], kind: K) =>
  lines.filter((line): line is LineOf<K> => line.kind === kind);

const mostShown = 50;

/** What would have happened, and how that differs from what did. */
function Outcome({
  result: { lines, rule, isCompared },
  isOld,
}: {
  result: Result;
  isOld: boolean;
}) {
  const alarms = linesOf(lines, 'alarm');
  // The device may have other rules beside it.
  const differences = linesOf(lines, 'difference').filter(
    ({ of, puId }) => of === 'alarm' && puId === rule['puId'],
  );
  const only = (side: 'candidate' | 'against') =>
    differences.filter((difference) => difference.only === side).length;
  const isWhole = lines.some(({ kind }) => kind === 'done');
  const caveats = new Set(linesOf(lines, 'device').flatMap((device) => device.caveats));
  const nameOf = ({ stId, evId }: { stId: number; evId: number }) => {
    const at = pathOf(rule, { stId, evId });
    return at ? nameOfEvent(valueAt(rule, at) as object as Rule) : t('event.unknown', { id: evId });
  };
  return (
    <div class="try-outcome" role="status">
      {isOld && <p class="fine">{text('try.old')}</p>}
      {!isWhole && <p class="notice">{text('try.cut')}</p>}
      <p>
        <strong>{text('try.alarms', { count: formatNumber(alarms.length) })}</strong>{' '}
        {text('try.firings', { count: formatNumber(linesOf(lines, 'firing').length) })}
      </p>
      <ul class="try-list">
        {alarms.slice(0, mostShown).map((alarm) => {
          const from = alarm.beganTs ?? alarm.sinceTs;
          const until = alarm.overTs ?? alarm.closedTs;
          return (
            <li key={`${from}/${alarm.evId}`}>
              <strong>{nameOf(alarm)}</strong> {formatTime(from)}{' '}
              <span class="muted">
                {until === null
                  ? text('try.open')
                  : text('try.lasted', { time: formatDuration(until - from) })}
              </span>
            </li>
          );
        })}
      </ul>
      <More all={alarms.length} />
      <p>
        {isCompared
          ? text('try.compared', {
              more: formatNumber(only('candidate')),
              fewer: formatNumber(only('against')),
            })
          : text('try.notCompared')}
      </p>
      <ul class="try-list">
        {differences.slice(0, mostShown).map((difference) => (
          <li key={`${difference.ts}/${difference.evId}/${difference.only ?? ''}`}>
            {formatTime(difference.ts)} <strong>{nameOf(difference)}</strong>{' '}
            <span class="muted">{sayDifference(difference)}</span>
          </li>
        ))}
      </ul>
      <More all={differences.length} />
      {caveats.size > 0 && <p class="fine">{text('try.caveats')}</p>}
    </div>
  );
}

function More({ all }: { all: number }) {
  if (all <= mostShown) return null;
  return <p class="fine">{text('try.more', { count: formatNumber(all - mostShown) })}</p>;
}

function sayDifference({ only, earlierMs = 0 }: LineOf<'difference'>): string {
  if (only) return text(`try.only.${only}`);
  const time = formatDuration(Math.abs(earlierMs));
  return earlierMs < 0 ? text('try.later', { time }) : text('try.earlier', { time });
}

/** The condition of the selected event, or of the first one, that has a limit to move; and where it is. */
function limitOf(rule: Rule, selected: Selected | null) {
  const events = rule.states.flatMap(({ stId, events: own }) =>
    own.map((event) => ({ at: { stId, evId: event.evId }, event })),
  );
  const isSelected = ({ at }: { at: Required<Selected> }) =>
    at.stId === selected?.stId && at.evId === selected.evId;
  for (const { at, event } of [...events.filter(isSelected), ...events])
    for (const [c, cause] of event.causes.entries()) {
      const sentence = readCause(cause);
      const value = sentence?.least ?? sentence?.most;
      const isPlain = sentence?.subject === 'value' || sentence?.subject === 'avg';
      if (sentence && value !== undefined && isPlain)
        return { sentence, value, event, path: [...(pathOf(rule, at) ?? []), 'causes', c] };
    }
  return null;
}

/** What is drawn, and what is played; null: there is too much to play it here. */
type Loaded = { drawn: readonly Series[]; values: readonly Values[] | null };

async function load(
  uuid: string,
  senses: readonly string[],
  span: Span,
  signal: AbortSignal,
): Promise<Loaded> {
  if (senses.length === 0) return { drawn: [], values: [] };
  const range = { senses, start: Math.floor(span.start), end: Math.ceil(span.end) };
  const values = await listFewPoints(uuid, range, mostValues, signal);
  if (values === null) return { drawn: await loadSeries(uuid, span, signal), values };
  const drawn = values.map(({ sId, ts, val }) => ({ sId, widthMs: 0, points: toPoints(ts, val) }));
  return { drawn, values };
}

type TryChartProps = Omit<TryProps, 'stored'> & { span: Span };

function TryChart({ uuid, span, ...others }: TryChartProps) {
  const sIds = [
    ...new Set(
      others.rule.states.flatMap(({ events }) =>
        events.flatMap((event) =>
          (groupsOf(event)?.flat() ?? event.causes).flatMap(({ sId }) =>
            typeof sId === 'string' && sId !== '' ? [sId] : [],
          ),
        ),
      ),
    ),
  ].toSorted();
  const query = useQuery(`try/${uuid}/${span.start}/${sIds.join()}`, (signal) =>
    load(uuid, sIds, span, signal),
  );
  return (
    <Answered query={query}>{(loaded) => <Chart {...others} span={span} {...loaded} />}</Answered>
  );
}

/** The same ones each time, so that the chart takes its data once. */
const none: never[] = [];

function Chart({
  rule,
  selected,
  senses,
  span,
  drawn,
  values,
  onChange,
}: Omit<TryChartProps, 'uuid'> & Loaded) {
  const limit = limitOf(rule, selected);
  const [scale, setScale] = useState<Scale | null>(null);
  const played = usePlayed(rule, values, span);
  const sId = limit?.sentence.sId ?? '';
  const series = useMemo(
    () => drawn.find((each) => each.sId === sId) ?? { sId, widthMs: 0, points: none },
    [drawn, sId],
  );
  if (!limit) return <p class="fine">{text('try.noLimit')}</p>;
  const { sentence, value, event, path } = limit;
  const sense = senses.get(sId);
  const move = (next: number) =>
    onChange(moved(rule, { path, sentence }, next), `try/${path.join('/')}`);
  return (
    <>
      <p class="fine" role="status">
        {typeof played === 'object'
          ? text('try.here', {
              alarms: count('audit.alarms', played.alarms.length),
              limit: formatValue(value, sense),
            })
          : text(`try.${played}`)}
      </p>
      <div class="try-chart">
        <Plot
          series={series}
          others={none}
          span={span}
          limits={[{ ...span, value, text: '', name: nameOfEvent(event), isAlarm: true }]}
          alarms={typeof played === 'object' ? played.alarms : none}
          late={none}
          hasMean={false}
          onZoom={() => undefined}
          onScale={(next) =>
            setScale((before) => (JSON.stringify(before) === JSON.stringify(next) ? before : next))
          }
          say={(ts, at) => {
            const val = at(2);
            return val === null ? '' : `${formatTime(ts)} ${formatValue(val, sense)}`;
          }}
        />
        {scale && <Handle {...{ scale, value, sense }} onMove={move} />}
      </div>
    </>
  );
}

function moved(
  rule: Rule,
  { path, sentence }: { path: Path; sentence: Sentence },
  next: number,
): Rule {
  const which = sentence.least === undefined ? 'most' : 'least';
  const cause = valueAt(rule, path) as object as Rule;
  return withAt(rule, path, writeCause(cause, { ...sentence, [which]: next }));
}

/** Plays the rule in the page, again after each change; otherwise why there is no answer (yet). */
function usePlayed(
  rule: Rule,
  series: readonly Values[] | null,
  span: Span,
): Played | 'waiting' | 'tooMany' | 'incomplete' | 'failed' {
  const [played, setPlayed] = useState<ReturnType<typeof usePlayed>>('waiting');
  useEffect(() => {
    let isGone = false;
    const play = async () => {
      if (series === null) return 'tooMany';
      const { playRule } = await import('../../engine/play.ts');
      return playRule(rule, series, span) ?? 'incomplete';
    };
    void play()
      .catch(() => 'failed' as const)
      .then((next) => isGone || setPlayed(next));
    return () => {
      isGone = true;
    };
  }, [rule, series, span]);
  return played;
}

type HandleProps = {
  scale: Scale;
  value: number;
  sense: Sense | undefined;
  onMove: (value: number) => void;
};

/** The limit on the chart: drag it, or use the arrow keys. */
function Handle({ scale, value, sense, onMove }: HandleProps) {
  const { min, max, topPx, heightPx } = scale;
  const step = 10 ** -(sense?.decimals ?? 1);
  const rounded = (number: number) => Math.round(number / step) * step;
  const tidy = (number: number) => Number(rounded(number).toFixed(sense?.decimals ?? 1));
  const handle = useRef<HTMLDivElement>(null);
  const share = Math.min(1, Math.max(0, (max - value) / (max - min)));
  const drag = (event: PointerEvent) => {
    const box = handle.current?.parentElement?.getBoundingClientRect();
    if (!box || !handle.current?.hasPointerCapture(event.pointerId)) return;
    const at = (event.clientY - box.top - topPx) / heightPx;
    onMove(tidy(max - Math.min(1, Math.max(0, at)) * (max - min)));
  };
  const press = (event: KeyboardEvent) => {
    const by = { ArrowUp: 1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    onMove(tidy(value + by * step));
  };
  return (
    <div
      ref={handle}
      class="try-handle"
      role="slider"
      tabIndex={0}
      aria-orientation="vertical"
      aria-label={text('try.limit')}
      aria-valuemin={min}
      aria-valuemax={max}
      aria-valuenow={value}
      aria-valuetext={formatValue(value, sense)}
      style={{ top: `${topPx + share * heightPx}px` }}
      onPointerDown={(event) => handle.current?.setPointerCapture(event.pointerId)}
      onPointerMove={drag}
      onKeyDown={press}
    >
      {formatValue(value, sense)}
    </div>
  );
}
