import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { ListedAlarm, Sense } from '../../../api/types.ts';
import { formatTime, formatValue } from '../../../text/format.ts';
import { t } from '../../../text/t.ts';
import type { CurrentProfile } from '../tab.ts';
import { Strip } from './happened.tsx';
import { Plot } from './plot.tsx';
import { kindOf, type Series, type Span } from './points.ts';
import { alarmSpans, moveSpan, scaleSpan, showSpan, valueSegments } from './series.ts';
import { limitsOf } from './thresholds.ts';
import { ValueTable } from './value-table.tsx';

type SenseChartProps = {
  name: string;
  sense: Sense | undefined;
  series: Series;
  span: Span;
  profile: CurrentProfile | null;
  alarms: readonly ListedAlarm[];
  onZoom: (span: Span) => void;
  onPreview: (span: Span | null) => void;
};

/** The same as in chart.css. */
const insets = { left: 56, right: 28 };

/** One sense over time: as a line, or as a strip if it has few different values. */
export function SenseChart(props: SenseChartProps) {
  const { name, sense, series, span, onPreview } = props;
  const readout = useRef<HTMLOutputElement>(null);
  const box = useGestures(span, insets, onPreview);
  const kind = kindOf(sense, series);
  // Bypasses the components: a pointer moves a hundred times a second.
  const say = (seconds: number | null, mean: number | null) => {
    if (readout.current) readout.current.textContent = sayPoint(seconds, mean, sense);
  };
  const label = sense?.unit ? t('device.chartOf', { name, unit: sense.unit }) : name;
  return (
    <figure class="chart">
      <figcaption>
        {label}
        <output ref={readout} class="readout" aria-live="off" />
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
          <Line {...props} say={say} />
        ) : (
          <Strip
            label={label}
            segments={valueSegments(series, kind === 'switch')}
            span={span}
            look="state"
          />
        )}
      </div>
      <ValueTable label={label} sense={sense} series={series} />
    </figure>
  );
}

type LineProps = SenseChartProps & {
  say: (seconds: number | null, mean: number | null) => void;
};

function Line({ sense, series, span, profile, alarms, onZoom, say }: LineProps) {
  const { sId } = series;
  const limits = useMemo(() => limitsOf(sId, sense, profile), [sId, sense, profile]);
  const rung = useMemo(() => {
    const own = alarms.filter(({ values }) => values.some((value) => value.sId === sId));
    return alarmSpans(own, { start: 0, end: Number.MAX_SAFE_INTEGER });
  }, [alarms, sId]);
  return (
    <>
      <Plot {...{ series, span, limits, onZoom }} alarms={rung} onPoint={say} />
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

/** What is under the pointer; empty in a gap. */
const sayPoint = (seconds: number | null, mean: number | null, sense: Sense | undefined) =>
  seconds === null || mean === null
    ? ''
    : `${formatTime(seconds * 1_000)}  ${formatValue(mean, sense)}`;

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
function useGestures(
  span: Span,
  insets: { left: number; right: number },
  preview: (span: Span | null) => void,
) {
  const box = useRef<HTMLDivElement>(null);
  const latest = useRef(span);
  latest.current = span;
  useEffect(() => {
    const { current: at } = box;
    if (!at) return undefined;
    return listen(at, { insets, span: () => latest.current, preview });
  }, []);
  return box;
}

type Deps = {
  insets: { left: number; right: number };
  span: () => Span;
  preview: (span: Span | null) => void;
};

function listen(at: HTMLElement, { insets, span, preview }: Deps): () => void {
  const gone = new AbortController();
  const { signal } = gone;
  const touched: Touched = new Map();
  let first = span();
  let began: number[] = [];
  let shown: Span | null = null;

  const part = (x: number) => {
    const { left, width } = at.getBoundingClientRect();
    return (x - left - insets.left) / Math.max(1, width - insets.left - insets.right);
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
