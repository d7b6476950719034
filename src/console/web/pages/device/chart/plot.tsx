import { signal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import UPlot from 'uplot';
import { theme } from '../../../app/preferences.tsx';
import { accountOf } from '../../../app/session.ts';
import { formatNumber } from '../../../text/format.ts';
import { language, locale } from '../../../text/t.ts';
import {
  alonePlaces,
  dateOf,
  inView,
  type Series,
  type Span,
  toColumns,
  valueAt,
} from './points.ts';
import type { DrawnLimit } from './thresholds.ts';

/** The smallest and the largest values as lines, with a band between them. A table says the same. */
export function Plot(props: PlotProps) {
  const box = useRef<HTMLDivElement>(null);
  const tip = useRef<HTMLOutputElement>(null);
  const plot = useRef<UPlot>(null);
  const latest = useRef(props);
  latest.current = props;
  const { series, others, span, limits, alarms, late, hasMean } = props;
  const shown = theme.value;
  useEffect(() => {
    const { current: at } = box;
    if (!at) return undefined;
    const made = new UPlot(optionsOf(at.clientWidth, latest, tip), dataOf(latest.current), at);
    plot.current = made;
    show(made, latest.current.span);
    const fit = () => made.setSize({ width: at.clientWidth, height: plotHeight });
    const resize = new ResizeObserver(fit);
    resize.observe(at);
    // A canvas does not follow the layout on paper by itself.
    const print = () => made.setSize({ width: paperPx, height: plotHeight });
    addEventListener('beforeprint', print);
    addEventListener('afterprint', fit);
    return () => {
      resize.disconnect();
      removeEventListener('beforeprint', print);
      removeEventListener('afterprint', fit);
      made.destroy();
      forgetAxis(made);
      plot.current = null;
    };
    // uPlot takes the number of lines once.
  }, [shown, language.value, others.length]);
  useEffect(() => {
    const { current: made } = plot;
    made?.batch(() => {
      made.setData(dataOf(latest.current), false);
      show(made, latest.current.span);
    });
  }, [series, others]);
  useEffect(() => {
    if (plot.current) show(plot.current, span);
  }, [span.start, span.end]);
  useEffect(() => plot.current?.redraw(false, false), [limits, alarms, late, hasMean]);
  // The charts of a page have the same axis, so that a time is at the same place in all of them.
  const axis = axisPx.value;
  useEffect(() => plot.current?.redraw(false, true), [axis]);
  return (
    <div class="chart-box">
      <div ref={box} aria-hidden="true" />
      <output ref={tip} class="tip" aria-live="off" hidden />
    </div>
  );
}

const show = (plot: UPlot, { start, end }: Span) =>
  plot.setScale('x', { min: start / 1_000, max: end / 1_000 });

const plotHeight = 180;
/** The width of a chart on A4 and on Letter, as in print.css. */
const paperPx = 640;
/** Space right of the plot; the strips below have the same (chart.css). */
export const rightPx = 28;
const leastDragPx = 8;

const leastAxisPx = 56;
/** The width of the axis of values: that of its longest number, in all charts of the page. */
export const axisPx = signal(leastAxisPx);
const wantedPx = new Map<UPlot, number>();

function wantAxis(plot: UPlot, px: number): void {
  if (wantedPx.get(plot) === px) return;
  wantedPx.set(plot, px);
  // After the drawing that found it out.
  queueMicrotask(setAxis);
}

function forgetAxis(plot: UPlot): void {
  wantedPx.delete(plot);
  queueMicrotask(setAxis);
}

const setAxis = () => {
  axisPx.value = Math.max(leastAxisPx, ...wantedPx.values());
};

/** Beside the numbers of the axis. */
const besidePx = 14;

/** uPlot asks with the texts that it will draw. */
function sizeOf(plot: UPlot, texts: string[] | null, axis: number): number {
  const font = plot.axes[axis]?.font?.[0];
  if (!texts || font === undefined) return axisPx.peek();
  plot.ctx.font = font;
  const widths = texts.map((text) => plot.ctx.measureText(text).width / devicePixelRatio);
  const px = Math.ceil(Math.max(...widths)) + besidePx;
  wantAxis(plot, px);
  return Math.max(px, axisPx.peek());
}

/** Numbers of an axis with as many decimals as tell them apart. */
function saySplits(splits: readonly number[], step: number): string[] {
  let decimals = 0;
  while (
    decimals < 12 &&
    Math.abs(step * 10 ** decimals - Math.round(step * 10 ** decimals)) > 1e-6
  )
    decimals += 1;
  return splits.map((each) => formatNumber(each, decimals));
}

/** Columns of this sense, then the smallest and largest of each other line. */
function dataOf({ series, others }: PlotProps): UPlot.AlignedData {
  const own = toColumns(series);
  if (others.length === 0) return own;
  return UPlot.join([
    own,
    ...others.map((other): UPlot.AlignedData => {
      const [times, , least = [], most = []] = toColumns(other.series);
      return [times, least, most];
    }),
  ]);
}

type Latest = { current: PlotProps };

/** How uPlot draws a sense. Whatever may change is read from `latest` at each drawing. */
function optionsOf(
  width: number,
  latest: Latest,
  tip: RefObject<HTMLOutputElement | null>,
): UPlot.Options {
  const colors = colorsOf();
  const grid = { stroke: colors.grid, width: 1 };
  const axis = { stroke: colors.ink, grid, ticks: { show: false }, font: '12px system-ui' };
  const zone = accountOf()?.timeZone ?? 'UTC';
  const points = { show: () => false, filter: alone, size: 6 };
  const edge = { stroke: colors.line, width: 1.5, points: { ...points, fill: colors.line } };
  const lines = latest.current.others.flatMap(({ tone, isBefore }) => {
    const stroke = isBefore ? colors.ink : (colors.others[tone] ?? colors.ink);
    const dash = isBefore ? { dash: [4, 4] } : {};
    const line = { stroke, width: 1.5, ...dash, points: { ...points, fill: stroke } };
    return [line, line];
  });
  return {
    width,
    height: plotHeight,
    padding: [8, rightPx, 0, 0],
    legend: { show: false },
    tzDate: (seconds) => UPlot.tzDate(dateOf(seconds * 1_000), zone),
    cursor: {
      // The pointer moves in all charts of the page, but dragging across one zooms only once.
      sync: { key: 'device', filters: { pub: isMove, sub: isMove } },
      drag: { x: true, y: false, setScale: false },
      y: false,
      points: { size: 7 },
    },
    scales: {
      x: { auto: false, range: (_, min, max) => [min, max] },
      y: { range: (_, min, max) => rangeOf(min, max, latest.current) },
    },
    axes: [
      { ...axis, size: 28, values: clockValues(zone) },
      { ...axis, size: sizeOf, values: (_, splits, __, ___, step) => saySplits(splits, step) },
    ],
    series: [
      {},
      {
        stroke: () => (latest.current.hasMean ? colors.ink : 'transparent'),
        width: 1.5,
        dash: [2, 3],
        points: { show: false },
      },
      edge,
      edge,
      ...lines,
    ],
    bands: [{ series: [3, 2], fill: colors.band }],
    hooks: {
      drawClear: [
        (plot) => {
          drawSpans(plot, latest.current.alarms, colors.alarm);
          drawSpans(plot, latest.current.late, colors.late);
        },
      ],
      draw: [
        (plot) => {
          drawLimits(plot, latest.current.limits, colors);
          const { min = 0, max = 1 } = plot.scales['y'] ?? {};
          const { offsetTop, clientHeight } = plot.over;
          latest.current.onScale?.({ min, max, topPx: offsetTop, heightPx: clientHeight });
        },
      ],
      setCursor: [(plot) => showTip(plot, tip.current, latest.current)],
      setSelect: [
        (plot) => {
          const { left, width: px } = plot.select;
          if (px < leastDragPx) return;
          const at = (x: number) => plot.posToVal(x, 'x') * 1_000;
          latest.current.onZoom({ start: at(left), end: at(left + px) });
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
    },
  };
}

const tipGapPx = 12;

/** What is under the pointer, beside it: on its left where there is no room on the right. */
function showTip(plot: UPlot, tip: HTMLElement | null, { say }: PlotProps): void {
  const { idx, left = -1 } = plot.cursor;
  if (!tip) return;
  const times = plot.data[0];
  const seconds = typeof idx === 'number' ? times[idx] : undefined;
  const text =
    left < 0 || seconds === undefined || typeof idx !== 'number'
      ? ''
      : say(seconds * 1_000, (line) => valueAt(plot.data[line] ?? [], idx));
  tip.hidden = text === '';
  if (text === '') return;
  // Bypasses the components: a pointer moves a hundred times a second.
  tip.textContent = text;
  const x = left + plot.over.offsetLeft;
  const { offsetWidth } = tip;
  const room = plot.width - x - tipGapPx;
  tip.style.left = `${room > offsetWidth ? x + tipGapPx : Math.max(0, x - tipGapPx - offsetWidth)}px`;
}

/** A value between gaps, such as a device's first one, has no line, so it is drawn as a point. */
const alone: UPlot.Series.Points.Filter = (plot, series) => alonePlaces(plot.data[series] ?? []);

const isMove = (type: string) => type === 'mousemove' || type === 'mouseleave';

/** Fits the values, and limits that are near. */
function rangeOf(min: number | null, max: number | null, latest: PlotProps): UPlot.Range.MinMax {
  const values = latest.limits.map(({ value }) => value);
  if (min === null || max === null)
    return UPlot.rangeNum(Math.min(...values, 0), Math.max(...values, 1), 0.1, true);
  const [least, most] = inView(min, max, latest);
  // For a single value uPlot would show everything from 0 to twice that value.
  if (least === most) return around(least);
  return UPlot.rangeNum(least, most, 0.1, true);
}

const around = (value: number): UPlot.Range.MinMax => {
  const room = Math.max(Math.abs(value) / 10, 1);
  return [value - room, value + room];
};

/** Times of day, and at midnight the date. */
function clockValues(zone: string): UPlot.Axis.DynamicValues {
  const options = { timeZone: zone, hour: '2-digit', minute: '2-digit' } as const;
  const time = new Intl.DateTimeFormat(locale(), options);
  const precise = new Intl.DateTimeFormat(locale(), { ...options, second: '2-digit' });
  const day = new Intl.DateTimeFormat(locale(), {
    timeZone: zone,
    day: 'numeric',
    month: 'short',
  });
  const isMidnight = new Intl.DateTimeFormat('sv', { timeZone: zone, timeStyle: 'medium' });
  return (_, splits, __, ___, stepSeconds) =>
    splits.map((seconds) => {
      const ts = seconds * 1_000;
      if (isMidnight.format(ts) === '00:00:00') return day.format(ts);
      return (stepSeconds < 60 ? precise : time).format(ts);
    });
}

/** The colours of tokens.css, which a canvas cannot use directly. */
type Colors = Record<
  'ink' | 'grid' | 'line' | 'band' | 'limit' | 'mild' | 'alarm' | 'late' | 'panel',
  string
> & { others: readonly string[] };

function colorsOf(): Colors {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(name).trim();
  return {
    ink: of('--muted'),
    grid: of('--line'),
    line: of('--series-1'),
    band: of('--series-1-band'),
    limit: of('--bad'),
    mild: of('--warn'),
    alarm: of('--bad-soft'),
    late: of('--warn-soft'),
    panel: of('--panel'),
    others: ['--series-2', '--series-3', '--series-4'].map(of),
  };
}

/** Behind everything else: when an alarm of this sense was open, or late values were beyond a limit. */
function drawSpans(plot: UPlot, spans: readonly Span[], color: string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.fillStyle = color;
  ctx.globalAlpha = 0.7;
  for (const { start, end } of spans) {
    const left = xOf(plot, start);
    ctx.fillRect(left, bbox.top, Math.max(1, xOf(plot, end) - left), bbox.height);
  }
  ctx.restore();
}

/** Where a time is on the canvas, or the edge of the plot that is nearest to it. */
function xOf(plot: UPlot, ts: number): number {
  const { left, width } = plot.bbox;
  return Math.min(Math.max(plot.valToPos(ts / 1_000, 'x', true), left), left + width);
}

const mostLetters = 28;

/** A line for each limit while it applied, with the name of its event. */
function drawLimits(plot: UPlot, limits: readonly DrawnLimit[], colors: Colors): void {
  const { ctx, bbox } = plot;
  const { devicePixelRatio: pxRatio } = window;
  const { min = 0, max = 0 } = plot.scales['y'] ?? {};
  ctx.save();
  ctx.font = `${11 * pxRatio}px system-ui`;
  ctx.textBaseline = 'bottom';
  // On the left, away from the newest values.
  ctx.textAlign = 'left';
  ctx.lineWidth = pxRatio;
  for (const { value, name, isAlarm, start, end } of limits) {
    const color = isAlarm ? colors.limit : colors.mild;
    if (value < min || value > max) continue;
    const y = Math.round(plot.valToPos(value, 'y', true));
    ctx.strokeStyle = color;
    ctx.setLineDash([6 * pxRatio, 4 * pxRatio]);
    ctx.beginPath();
    const [from, to] = [start, end].map((ts) => xOf(plot, ts)) as [number, number];
    ctx.moveTo(from, y);
    ctx.lineTo(to, y);
    ctx.stroke();
    const text = name.length > mostLetters ? `${name.slice(0, mostLetters)}…` : name;
    const room = bbox.left + bbox.width - ctx.measureText(text).width;
    const left = Math.min(from, room) + 4 * pxRatio;
    // An outline, so that the text stays readable in front of the values.
    ctx.setLineDash([]);
    ctx.lineWidth = 3 * pxRatio;
    ctx.strokeStyle = colors.panel;
    ctx.strokeText(text, left, y - 2 * pxRatio);
    ctx.lineWidth = pxRatio;
    ctx.fillStyle = color;
    ctx.fillText(text, left, y - 2 * pxRatio);
  }
  ctx.restore();
}

/** Another line in the chart: the same sense of another device, or of this one at an earlier time. */
export type OtherLine = {
  name: string;
  series: Series;
  /** One of three colours. */
  tone: number;
  /** An earlier time, moved to where it is compared. */
  isBefore: boolean;
};

/** The range of values that a plot shows, and where it is in its box. */
export type Scale = { min: number; max: number; topPx: number; heightPx: number };

type PlotProps = {
  series: Series;
  others: readonly OtherLine[];
  span: Span;
  limits: readonly DrawnLimit[];
  /** Alarms of this sense. */
  alarms: readonly Span[];
  /** When late values were beyond a limit. */
  late: readonly Span[];
  /** Whether the mean of each bucket is drawn too. */
  hasMean: boolean;
  onZoom: (span: Span) => void;
  /** Where the values are, after each drawing. */
  onScale?: (scale: Scale) => void;
  /** What is under the pointer; `at`: the value of a line there. Empty: nothing. */
  say: (ts: number, at: (line: number) => number | null) => string;
};

/** The width of an element, px; `first` until it is known. */
export function useWidth(element: RefObject<HTMLElement | null>, first: number): number {
  const [width, setWidth] = useState(first);
  useLayoutEffect(() => {
    const { current: at } = element;
    if (!at) return undefined;
    const resize = new ResizeObserver(() => setWidth(at.clientWidth));
    resize.observe(at);
    return () => resize.disconnect();
  }, []);
  return width;
}
