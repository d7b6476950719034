import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import UPlot from 'uplot';
import { theme } from '../../../app/preferences.tsx';
import { accountOf } from '../../../app/session.ts';
import { formatNumber } from '../../../text/format.ts';
import { language, locale } from '../../../text/t.ts';
import { alonePlaces, dateOf, inView, type Series, type Span, toColumns } from './points.ts';
import type { Limit } from './thresholds.ts';

/** The mean, with a band from the smallest to the largest value. A table says the same. */
export function Plot(props: PlotProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot>(null);
  const latest = useRef(props);
  latest.current = props;
  const { series, span, limits, alarms } = props;
  const shown = theme.value;
  useEffect(() => {
    const { current: at } = box;
    if (!at) return undefined;
    const made = new UPlot(optionsOf(at.clientWidth, latest), toColumns(latest.current.series), at);
    plot.current = made;
    show(made, latest.current.span);
    const resize = new ResizeObserver(() =>
      made.setSize({ width: at.clientWidth, height: plotHeight }),
    );
    resize.observe(at);
    return () => {
      resize.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shown, language.value]);
  useEffect(() => {
    const { current: made } = plot;
    made?.batch(() => {
      made.setData(toColumns(series), false);
      show(made, latest.current.span);
    });
  }, [series]);
  useEffect(() => {
    if (plot.current) show(plot.current, span);
  }, [span.start, span.end]);
  useEffect(() => plot.current?.redraw(false, false), [limits, alarms]);
  return <div ref={box} class="chart-box" aria-hidden="true" />;
}

const show = (plot: UPlot, { start, end }: Span) =>
  plot.setScale('x', { min: start / 1_000, max: end / 1_000 });

const plotHeight = 180;
/** Space left and right of the plot; the strips below have the same (chart.css). */
const axisPx = 56;
const rightPx = 28;
const leastDragPx = 8;

/** How uPlot draws a sense. Whatever may change is read from `latest` at each drawing. */
function optionsOf(width: number, latest: { current: PlotProps }): UPlot.Options {
  const colors = colorsOf();
  const grid = { stroke: colors.grid, width: 1 };
  const axis = { stroke: colors.ink, grid, ticks: { show: false }, font: '12px system-ui' };
  const zone = accountOf()?.timeZone ?? 'UTC';
  const edge = { stroke: 'transparent', points: { show: false } };
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
    },
    scales: {
      x: { auto: false, range: (_, min, max) => [min, max] },
      y: { range: (_, min, max) => rangeOf(min, max, latest.current) },
    },
    axes: [
      { ...axis, size: 28, values: clockValues(zone) },
      { ...axis, size: axisPx, values: (_, splits) => splits.map((each) => formatNumber(each)) },
    ],
    series: [
      {},
      {
        stroke: colors.line,
        width: 2,
        points: { show: () => false, filter: alone, size: 6, fill: colors.line },
      },
      edge,
      edge,
    ],
    bands: [{ series: [3, 2], fill: colors.band }],
    hooks: {
      drawClear: [(plot) => drawAlarms(plot, latest.current.alarms, colors)],
      draw: [(plot) => drawLimits(plot, latest.current.limits, colors)],
      setCursor: [
        ({ cursor: { idx }, data: [times, means] }) => {
          const place = idx ?? -1;
          latest.current.onPoint(times[place] ?? null, means?.[place] ?? null);
        },
      ],
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
  'ink' | 'grid' | 'line' | 'band' | 'limit' | 'mild' | 'alarm' | 'panel',
  string
>;

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
    panel: of('--panel'),
  };
}

/** Behind everything else: the times when an alarm of this sense was open. */
function drawAlarms(plot: UPlot, alarms: readonly Span[], { alarm }: Colors): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.fillStyle = alarm;
  ctx.globalAlpha = 0.7;
  for (const { start, end } of alarms) {
    const at = (ts: number) =>
      Math.min(Math.max(plot.valToPos(ts / 1_000, 'x', true), bbox.left), bbox.left + bbox.width);
    const left = at(start);
    ctx.fillRect(left, bbox.top, Math.max(1, at(end) - left), bbox.height);
  }
  ctx.restore();
}

const mostLetters = 28;

/** A line for each limit, with the name of its event. */
function drawLimits(plot: UPlot, limits: readonly Limit[], colors: Colors): void {
  const { ctx, bbox } = plot;
  const { devicePixelRatio: pxRatio } = window;
  const { min = 0, max = 0 } = plot.scales['y'] ?? {};
  ctx.save();
  ctx.font = `${11 * pxRatio}px system-ui`;
  ctx.textBaseline = 'bottom';
  ctx.textAlign = 'right';
  ctx.lineWidth = pxRatio;
  for (const { value, name, isAlarm } of limits) {
    const color = isAlarm ? colors.limit : colors.mild;
    if (value < min || value > max) continue;
    const y = Math.round(plot.valToPos(value, 'y', true));
    ctx.strokeStyle = color;
    ctx.setLineDash([6 * pxRatio, 4 * pxRatio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    const right = bbox.left + bbox.width - 4 * pxRatio;
    const text = name.length > mostLetters ? `${name.slice(0, mostLetters)}…` : name;
    // An outline, so that the text stays readable in front of the values.
    ctx.setLineDash([]);
    ctx.lineWidth = 3 * pxRatio;
    ctx.strokeStyle = colors.panel;
    ctx.strokeText(text, right, y - 2 * pxRatio);
    ctx.lineWidth = pxRatio;
    ctx.fillStyle = color;
    ctx.fillText(text, right, y - 2 * pxRatio);
  }
  ctx.restore();
}

type PlotProps = {
  series: Series;
  span: Span;
  limits: readonly Limit[];
  /** Alarms of this sense. */
  alarms: readonly Span[];
  onZoom: (span: Span) => void;
  /** What is under the pointer, in this chart or another; null: nothing. */
  onPoint: (seconds: number | null, mean: number | null) => void;
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
