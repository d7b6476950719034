import { useRef } from 'preact/hooks';
import { useQuery } from '../../api/cache.ts';
import { listBuckets } from '../../api/measurements.ts';
import type { BucketView, Sense } from '../../api/types.ts';
import { clock } from '../../app/now.ts';
import { setQuery } from '../../app/router.ts';
import { Answered, Empty } from '../../parts/panel.tsx';
import { nameOfSense } from '../../parts/senses.ts';
import { formatTime, formatValue } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { toColumns } from './chart-data.ts';
import { Chart } from './chart.tsx';
import { HistoryTable } from './history-table.tsx';
import { ranges, readRange, widthOf, type Range, type RangeName } from './range.ts';

const everyMs = 10_000;
type HistoryProps = { uuid: string; senses: ReadonlyMap<string, Sense> };

/** What was measured, a chart for each sense over one range of time. */
export function History({ uuid, senses }: HistoryProps) {
  const range = readRange(clock.value);
  const width = widthOf(range);
  const key = range.name ?? `${range.start}-${range.end}`;
  const load = (signal: AbortSignal) => {
    const { start, end } = readRange(clock.peek());
    return listBuckets(uuid, { start, end, bucket: width.bucket }, signal);
  };
  const live = range.name === null ? {} : { everyMs };
  const query = useQuery(`buckets/${uuid}/${key}`, load, live);
  const zoom = (from: number, to: number) =>
    setQuery({ from: String(Math.round(from)), to: String(Math.round(to)) });
  return (
    <section class="panel" aria-labelledby="history">
      <div class="panel-head">
        <h2 id="history">{t('device.history')}</h2>
        <Ranges range={range} />
      </div>
      <Answered query={query} lines={6}>
        {(buckets) => {
          const bySense = Map.groupBy(buckets, ({ sId }) => sId);
          if (bySense.size === 0) return <Nothing isZoomed={range.name === null} />;
          return (
            <>
              {[...bySense].map(([sId, of]) => (
                <SenseHistory
                  key={sId}
                  sId={sId}
                  sense={senses.get(sId)}
                  buckets={of}
                  range={range}
                  widthMs={width.ms}
                  onZoom={zoom}
                />
              ))}
              <p class="fine chart-hint">{t('device.zoomHint')}</p>
            </>
          );
        }}
      </Answered>
    </section>
  );
}

type SenseHistoryProps = {
  sId: string;
  sense: Sense | undefined;
  buckets: readonly BucketView[];
  range: Range;
  widthMs: number;
  onZoom: (from: number, to: number) => void;
};

function SenseHistory({ sId, sense, ...rest }: SenseHistoryProps) {
  const readout = useRef<HTMLOutputElement>(null);
  const name = nameOfSense(sId, sense);
  // Written past the components: a pointer moves a hundred times a second.
  const show = (column: number | null) => {
    if (readout.current) readout.current.textContent = sayPoint(rest, sense, column);
  };
  const label = sense?.unit ? t('device.chartOf', { name, unit: sense.unit }) : name;
  return (
    <figure class="chart">
      <figcaption>
        {label}
        <output ref={readout} class="readout" aria-live="off" />
      </figcaption>
      <Chart label={label} sense={sense} {...rest} onPoint={show} />
      <HistoryTable label={label} sense={sense} buckets={rest.buckets} />
    </figure>
  );
}

/** What is under the pointer; nothing in a gap. */
function sayPoint(
  { buckets, widthMs }: Pick<SenseHistoryProps, 'buckets' | 'widthMs'>,
  sense: Sense | undefined,
  column: number | null,
): string {
  const [times = [], means = []] = toColumns(buckets, widthMs);
  const seconds = column === null ? undefined : times[column];
  const mean = column === null ? undefined : means[column];
  if (typeof seconds !== 'number' || typeof mean !== 'number') return '';
  return `${formatTime(seconds * 1_000)}  ${formatValue(mean, sense)}`;
}

function Ranges({ range }: { range: Range }) {
  const choose = (name: RangeName) => setQuery({ range: name, from: '', to: '' });
  const { start, end } = range;
  return (
    <div class="ranges" role="group" aria-label={t('device.range')}>
      {range.name === null && (
        <p class="zoomed">
          {t('device.zoomed', { from: formatTime(start), to: formatTime(end) })}
          <button type="button" class="link" onClick={() => setQuery({ from: '', to: '' })}>
            {t('device.zoomOut')}
          </button>
        </p>
      )}
      {(Object.keys(ranges) as RangeName[]).map((name) => (
        <button
          key={name}
          type="button"
          class="range"
          aria-pressed={range.name === name}
          title={t(`device.range.${name}`)}
          onClick={() => choose(name)}
        >
          {name}
        </button>
      ))}
    </div>
  );
}

function Nothing({ isZoomed }: { isZoomed: boolean }) {
  return isZoomed ? (
    <Empty icon="pulse" title={t('device.noHistory')} />
  ) : (
    <Empty icon="pulse" title={t('device.noHistory')} hint={t('device.nothingHint')} />
  );
}
