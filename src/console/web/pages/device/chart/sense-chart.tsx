import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { LateSense, ListedAlarm, Sense } from '../../../api/types.ts';
import { formatTime, formatValue } from '../../../text/format.ts';
import { t } from '../../../text/t.ts';
import type { CurrentProfile } from '../tab.ts';
import { Strip } from './happened.tsx';
import { lateSpans, LateValues } from './late.tsx';
import { axisPx, type OtherLine, Plot, rightPx } from './plot.tsx';
import { kindOf, type Series, type Span } from './points.ts';
import { alarmSpans, moveSpan, scaleSpan, showSpan, valueSegments } from './series.ts';
import { type FormerProfile, limitsIn } from './thresholds.ts';
import { ValueTable } from './value-table.tsx';

type SenseChartProps = {
  name: string;
  sense: Sense | undefined;
  series: Series;
  others: readonly OtherLine[];
  span: Span;
  profile: CurrentProfile | null;
  alarms: readonly ListedAlarm[];
  /** What was in force before the profile. */
  former: readonly FormerProfile[];
  /** Values of it that came late; undefined: none did. */
  late: LateSense | undefined;
  hasMean: boolean;
  onZoom: (span: Span) => void;
  onPreview: (span: Span | null) => void;
};

/** One sense over time: as a line, or as a strip if it has few different values. */
export function SenseChart(props: SenseChartProps) {
  const { name, sense, series, others, span, hasMean, onPreview } = props;
  const box = useGestures(span, onPreview);
  const kind = kindOf(sense, series);
  const label = sense?.unit ? t('device.chartOf', { name, unit: sense.unit }) : name;
  const isBucketed = series.widthMs > 0;
  return (
    <figure class="chart">
      <figcaption>
        {label}
        {kind === 'number' && (isBucketed || others.length > 0) && (
          <Legend others={others} isBucketed={isBucketed} hasMean={hasMean} />
        )}
        {kind === 'switch' && <SwitchLegend isBucketed={isBucketed} />}
      </figcaption>
      <div
        ref={box}
        class="chart-keys"
        tabIndex={0}
        role="group"
        aria-label={summaryOf(label, series, sense)}
        aria-describedby="chart-keys"
      >
        {kind === 'number' ? (
          <Line {...props} />
        ) : (
          <Strip
            label={label}
            segments={valueSegments(series, kind === 'switch')}
            span={span}
            look={kind === 'switch' ? 'switch' : 'state'}
          />
        )}
      </div>
      {props.late && <LateValues late={props.late} sense={sense} />}
      <ValueTable label={label} sense={sense} series={series} />
    </figure>
  );
}

type LegendProps = Pick<SenseChartProps, 'others' | 'hasMean'> & { isBucketed: boolean };

/** What the lines are, where a chart has more than one. */
function Legend({ others, isBucketed, hasMean }: LegendProps) {
  return (
    <ul class="legend">
      {isBucketed && <li class="legend-own">{t('chart.extremes')}</li>}
      {isBucketed && hasMean && <li class="legend-mean">{t('device.mean')}</li>}
      {others.map(({ name, tone, isBefore }) => (
        <li key={name} class={isBefore ? 'legend-before' : `legend-${tone}`}>
          {name}
        </li>
      ))}
    </ul>
  );
}

/** Parts of a strip are often too narrow for a text. */
const SwitchLegend = ({ isBucketed }: { isBucketed: boolean }) => (
  <ul class="legend">
    <li class="legend-on">{t('chart.on')}</li>
    {isBucketed && <li class="legend-mixed">{t('chart.mixed')}</li>}
  </ul>
);

function Line(props: SenseChartProps) {
  const { sense, series, others, span, profile, alarms, former, late, hasMean, onZoom } = props;
  const { sId } = series;
  const limits = useMemo(
    () => limitsIn(span, { sId, unit: sense?.unit }, { profile, alarms, former }),
    [sId, sense, profile, alarms, former, span.start, span.end],
  );
  const rung = useMemo(() => {
    const own = alarms.filter(({ values }) => values.some((value) => value.sId === sId));
    return alarmSpans(own, { start: 0, end: Number.MAX_SAFE_INTEGER });
  }, [alarms, sId]);
  const unjudged = useMemo(() => lateSpans(late), [late]);
  const say = (ts: number, at: (line: number) => number | null) =>
    sayPoint(ts, at, { sense, others, hasMean: hasMean && series.widthMs > 0 });
  return (
    <>
      <Plot
        {...{ series, others, span, limits, hasMean, onZoom, say }}
        alarms={rung}
        late={unjudged}
      />
      {limits.length > 0 && (
        <ul class="limits">
          {limits.map(({ text, isAlarm }) => (
            <li key={text} class={isAlarm ? 'fine limit-alarm' : 'fine'}>
              {text}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

type Said = Pick<SenseChartProps, 'sense' | 'others' | 'hasMean'>;

/** What is under the pointer: the time, and a row for each line; empty in a gap. */
function sayPoint(
  ts: number,
  at: (line: number) => number | null,
  { sense, others, hasMean }: Said,
): string {
  const range = (least: number | null, most: number | null) => {
    if (least === null || most === null) return null;
    const from = formatValue(least, sense);
    return least === most ? from : `${from} – ${formatValue(most, sense)}`;
  };
  const [mean, least, most] = [at(1), at(2), at(3)];
  const own = range(least, most);
  const rows = [
    ...(own === null ? [] : [own]),
    ...(own === null || !hasMean || mean === null
      ? []
      : [`${t('device.mean')}: ${formatValue(mean, sense)}`]),
    ...others.flatMap(({ name }, place) => {
      const text = range(at(4 + 2 * place), at(5 + 2 * place));
      return text === null ? [] : [`${name}: ${text}`];
    }),
  ];
  return rows.length === 0 ? '' : [formatTime(ts), ...rows].join('\n');
}

/** A summary for people who cannot see the chart. */
function summaryOf(label: string, { points }: Series, sense: Sense | undefined): string {
  if (points.length === 0) return label;
  let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { min, max } of points) [least, most] = [Math.min(least, min), Math.max(most, max)];
  return `${label}: ${formatValue(least, sense)} – ${formatValue(most, sense)}`;
}

type Touched = Map<number, number>;

/** A finger that moves less than this touches a point. */
const leastPx = 10;

/**
 * Keys and fingers on a chart: arrows move it, + and - zoom; one finger moves it sideways, two zoom. `preview`: called
 * with the span while a gesture is under way; with null at its end, when the URL has the span.
 */
function useGestures(span: Span, preview: (span: Span | null) => void) {
  const box = useRef<HTMLDivElement>(null);
  const latest = useRef(span);
  latest.current = span;
  useEffect(() => {
    const { current: at } = box;
    if (!at) return undefined;
    return listen(at, { span: () => latest.current, preview });
  }, []);
  return box;
}

type Deps = {
  span: () => Span;
  preview: (span: Span | null) => void;
};

function listen(at: HTMLElement, { span, preview }: Deps): () => void {
  const gone = new AbortController();
  const { signal } = gone;
  const touched: Touched = new Map();
  let first = span();
  let began: number[] = [];
  let shown: Span | null = null;

  const part = (x: number) => {
    const { left, width } = at.getBoundingClientRect();
    const before = axisPx.peek();
    return (x - left - before) / Math.max(1, width - before - rightPx);
  };
  const begin = () => {
    first = shown ?? span();
    began = [...touched.values()].map(part);
  };
  const drop = ({ pointerId }: PointerEvent) => {
    if (!touched.delete(pointerId)) return;
    if (touched.size > 0) return begin();
    if (shown) showSpan(shown);
    shown = null;
    preview(null);
  };
  at.addEventListener(
    'pointerdown',
    ({ pointerType, pointerId, clientX }) => {
      if (pointerType !== 'touch') return;
      touched.set(pointerId, clientX);
      begin();
    },
    { signal },
  );
  addEventListener(
    'pointermove',
    ({ pointerId, clientX }) => {
      if (!touched.has(pointerId)) return;
      touched.set(pointerId, clientX);
      const next = spanOf(first, began, [...touched.values()].map(part));
      const { width } = at.getBoundingClientRect();
      const movedPx = Math.abs((next.start - first.start) / (first.end - first.start)) * width;
      if (shown || movedPx > leastPx || touched.size > 1) preview((shown = next));
    },
    { signal },
  );
  addEventListener('pointerup', drop, { signal });
  addEventListener('pointercancel', drop, { signal });
  at.addEventListener('keydown', (event) => pressKey(event, span()), { signal });
  return () => gone.abort();
}

/** The span that keeps the touched times under the fingers. */
function spanOf(first: Span, [a = 0, b]: number[], [x = 0, y]: number[]): Span {
  if (b === undefined || y === undefined) return moveSpan(first, a - x);
  const by = Math.abs(b - a) / Math.max(0.02, Math.abs(y - x));
  const about = (a + b) / 2;
  return moveSpan(scaleSpan(first, by, about), (about - (x + y) / 2) * 1);
}

const keyStep = 0.25;

function pressKey(event: KeyboardEvent, span: Span): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const next = nextOf(event.key, span);
  if (!next) return;
  event.preventDefault();
  // Holding a key down is one step for Back.
  showSpan(next, { replace: event.repeat });
}

function nextOf(key: string, span: Span): Span | null {
  switch (key) {
    case 'ArrowLeft':
      return moveSpan(span, -keyStep);
    case 'ArrowRight':
      return moveSpan(span, keyStep);
    case '+':
    case '=':
      return scaleSpan(span, 0.5);
    case '-':
      return scaleSpan(span, 2);
    default:
      return null;
  }
}
