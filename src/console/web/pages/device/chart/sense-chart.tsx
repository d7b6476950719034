import { useMemo, useRef } from 'preact/hooks';
import type { ListedAlarm, Sense } from '../../../api/types.ts';
import { formatTime, formatValue } from '../../../text/format.ts';
import { t } from '../../../text/t.ts';
import type { CurrentProfile } from '../tab.ts';
import { useGestures } from './gestures.ts';
import { kindOf } from './kind.ts';
import { Plot } from './plot.tsx';
import type { Span } from './span.ts';
import { alarmSpans, valueSegments } from './segments.ts';
import type { Series } from './point.ts';
import { Strip } from './strip.tsx';
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

/** As chart.css has them. */
const insets = { left: 56, right: 28 };

/** One sense over time: as a line, or as a strip where it has few values. */
export function SenseChart(props: SenseChartProps) {
  const { name, sense, series, span, onPreview } = props;
  const readout = useRef<HTMLOutputElement>(null);
  const box = useGestures(span, insets, onPreview);
  const kind = kindOf(sense, series);
  // Written past the components: a pointer moves a hundred times a second.
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

/** What is under the pointer; nothing in a gap. */
const sayPoint = (seconds: number | null, mean: number | null, sense: Sense | undefined) =>
  seconds === null || mean === null
    ? ''
    : `${formatTime(seconds * 1_000)}  ${formatValue(mean, sense)}`;

/** What a chart says to who cannot see it. */
function summaryOf(label: string, { points }: Series, sense: Sense | undefined): string {
  if (points.length === 0) return label;
  let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { min, max } of points) [least, most] = [Math.min(least, min), Math.max(most, max)];
  return `${label}: ${formatValue(least, sense)} – ${formatValue(most, sense)}`;
}
