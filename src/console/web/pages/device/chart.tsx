import { useEffect, useRef } from 'preact/hooks';
import UPlot from 'uplot';
import type { BucketView, Sense } from '../../api/types.ts';
import { accountOf } from '../../app/session.ts';
import { theme } from '../../app/theme.ts';
import { formatNumber, formatValue } from '../../text/format.ts';
import { language, locale } from '../../text/t.ts';
import { toColumns } from './chart-data.ts';
import { colorsOf } from './chart-colors.ts';
import type { Range } from './range.ts';

type ChartProps = {
  label: string;
  sense: Sense | undefined;
  buckets: readonly BucketView[];
  range: Range;
  widthMs: number;
  onZoom: (from: number, to: number) => void;
  /** The column under the pointer, of this or another chart; null: there is none. */
  onPoint: (column: number | null) => void;
};

const height = 180;
const leastDragPx = 8;

/** Mean with the band of least to most. The table beside it says the same. */
export function Chart(props: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot>(null);
  const latest = useRef(props);
  latest.current = props;
  const shown = theme.value;
  useEffect(() => {
    const { current: at } = box;
    if (!at) return undefined;
    const made = new UPlot(optionsOf(at.clientWidth, latest), columnsOf(latest.current), at);
    plot.current = made;
    const resize = new ResizeObserver(() => made.setSize({ width: at.clientWidth, height }));
    resize.observe(at);
    return () => {
      resize.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shown, language.value]);
  useEffect(() => plot.current?.setData(columnsOf(props)), [props.buckets]);
  return <div ref={box} class="chart-box" role="img" aria-label={summaryOf(props)} />;
}

const columnsOf = ({ buckets, widthMs }: ChartProps) => toColumns(buckets, widthMs);

function optionsOf(width: number, latest: { current: ChartProps }): UPlot.Options {
  const colors = colorsOf();
  const grid = { stroke: colors.grid, width: 1 };
  const axis = { stroke: colors.ink, grid, ticks: { show: false }, font: '12px system-ui' };
  const zone = accountOf()?.timeZone ?? 'UTC';
  const edge = { stroke: 'transparent', points: { show: false } };
  return {
    width,
    height,
    padding: [8, 28, 0, 0],
    legend: { show: false },
    tzDate: (seconds) => UPlot.tzDate(dateOf(seconds), zone),
    cursor: {
      // The pointer moves in all charts of the page; what is dragged across one zooms once.
      sync: { key: 'device', filters: { pub: isMove, sub: isMove } },
      drag: { x: true, y: false, setScale: false },
    },
    scales: {
      x: {
        range: () => {
          const { start, end } = latest.current.range;
          return [start / 1_000, end / 1_000];
        },
      },
    },
    axes: [
      { ...axis, size: 28, values: clockValues(zone) },
      { ...axis, size: 52, values: (_, splits) => splits.map((each) => formatNumber(each)) },
    ],
    series: [
      {},
      { stroke: colors.line, width: 2, points: { show: undefined as never, size: 5 } },
      edge,
      edge,
    ],
    bands: [{ series: [3, 2], fill: colors.band }],
    hooks: {
      setCursor: [({ cursor: { idx } }) => latest.current.onPoint(idx ?? null)],
      setSelect: [
        (made) => {
          const { left, width: px } = made.select;
          if (px < leastDragPx) return;
          const at = (x: number) => made.posToVal(x, 'x') * 1_000;
          latest.current.onZoom(at(left), at(left + px));
          made.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
    },
  };
}

const isMove = (type: string) => type === 'mousemove' || type === 'mouseleave';

/** Not the clock: a time of the chart, as uPlot takes it. */
const dateOf = (seconds: number) => new Date(seconds * 1_000);

/** Times of the day, and at midnight the date. */
function clockValues(zone: string): UPlot.Axis.DynamicValues {
  const options = { timeZone: zone } as const;
  const time = new Intl.DateTimeFormat(locale(), {
    ...options,
    hour: '2-digit',
    minute: '2-digit',
  });
  const day = new Intl.DateTimeFormat(locale(), {
    ...options,
    day: 'numeric',
    month: 'short',
  });
  const isMidnight = new Intl.DateTimeFormat('sv', { ...options, timeStyle: 'short' });
  return (_, splits) =>
    splits.map((seconds) =>
      (isMidnight.format(seconds * 1_000) === '00:00' ? day : time).format(seconds * 1_000),
    );
}

/** What a chart says to who cannot see it. */
function summaryOf({ label, buckets, sense }: ChartProps): string {
  const least = Math.min(...buckets.map(({ min }) => min));
  const most = Math.max(...buckets.map(({ max }) => max));
  return `${label}: ${formatValue(least, sense)} – ${formatValue(most, sense)}`;
}
