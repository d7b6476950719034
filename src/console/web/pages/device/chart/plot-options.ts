import UPlot from 'uplot';
import { accountOf } from '../../../app/session.ts';
import { formatNumber } from '../../../text/format.ts';
import { locale } from '../../../text/t.ts';
import { colorsOf } from './colors.ts';
import { alonePlaces } from './columns.ts';
import { dateOf } from './date-of.ts';
import { drawAlarms, drawLimits } from './draw.ts';
import { inView } from './in-view.ts';
import type { PlotProps } from './plot-props.ts';

export const plotHeight = 180;
/** What is left and right of the plot: strips below it have the same (chart.css). */
const axisPx = 56;
const rightPx = 28;
const leastDragPx = 8;

/** How uPlot draws a sense. What changes is read from `latest` when it draws. */
export function optionsOf(width: number, latest: { current: PlotProps }): UPlot.Options {
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
      // The pointer moves in all charts of the page; what is dragged across one zooms once.
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

/** A value between gaps, such as the first of a device, has no line: it is a point. */
const alone: UPlot.Series.Points.Filter = (plot, series) => alonePlaces(plot.data[series] ?? []);

const isMove = (type: string) => type === 'mousemove' || type === 'mouseleave';

/** Room for the values and for the limits that are near. */
function rangeOf(min: number | null, max: number | null, latest: PlotProps): UPlot.Range.MinMax {
  const values = latest.limits.map(({ value }) => value);
  if (min === null || max === null)
    return UPlot.rangeNum(Math.min(...values, 0), Math.max(...values, 1), 0.1, true);
  const [least, most] = inView(min, max, latest);
  // Of a single value uPlot would show all from 0 to its double.
  if (least === most) return around(least);
  return UPlot.rangeNum(least, most, 0.1, true);
}

const around = (value: number): UPlot.Range.MinMax => {
  const room = Math.max(Math.abs(value) / 10, 1);
  return [value - room, value + room];
};

/** Times of the day, and at midnight the date. */
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
