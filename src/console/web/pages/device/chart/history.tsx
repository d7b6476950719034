import { useEffect, useRef, useState } from 'preact/hooks';
import { type Query, reload, revise, useQuery } from '../../../api/cache.ts';
import { nameOfSense } from '../../../api/devices.ts';
import { useKnownLatest } from '../../../api/measurements.ts';
import type { Sense } from '../../../api/types.ts';
import { clock, now } from '../../../app/now.ts';
import { queryOf, setQuery } from '../../../app/router.ts';
import { accountOf } from '../../../app/session.ts';
import { onStream } from '../../../app/stream.ts';
import { Answered, Empty, Problem } from '../../../parts/panel.tsx';
import { Link } from '../../../parts/link.tsx';
import { t } from '../../../text/t.ts';
import { dayOf } from '../../../text/time.ts';
import type { CurrentProfile } from '../tab.ts';
import { type Beside, ChartTools, hasMean, linesBeside, useBeside } from './beside.tsx';
import { CsvButton } from './csv-button.tsx';
import { type Happened, happensTo, Lanes, loadHappened } from './happened.tsx';
import type { Named } from './csv.ts';
import { useLate } from './late.tsx';
import { placesOf } from './places.ts';
import { axisPx, type OtherLine } from './plot.tsx';
import type { Series, Span } from './points.ts';
import { Positions } from './positions.tsx';
import { Ranges, Zooms } from './ranges.tsx';
import { SenseChart } from './sense-chart.tsx';
import { append, loadSeries, type Range, readRange, showSpan } from './series.ts';
import { useFormer } from './thresholds.ts';

type HistoryProps = {
  uuid: string;
  name: string;
  senses: ReadonlyMap<string, Sense>;
  /** null if none is installed. */
  profile: CurrentProfile | null;
};

/** What was measured and what happened, over one range of time. */
export function History({ uuid, name, senses, profile }: HistoryProps) {
  const { range, series, happened, beside } = useHistory(uuid);
  const [preview, setPreview] = useState<Span | null>(null);
  const span = preview ?? range;
  const late = useLate(uuid, range);
  const former = useFormer(uuid, range);
  const located = placesOf(useKnownLatest(uuid)).map(({ sId }) => sId);
  const nameOf = (sId: string) => nameOfSense(sId, senses.get(sId));
  return (
    <section
      class="panel history"
      aria-labelledby="history"
      style={{ '--plot-left': `${axisPx.value}px` }}
    >
      <div class="panel-head">
        <h2 id="history">{t('device.history')}</h2>
        <Ranges range={range} />
        <Zooms range={range} />
      </div>
      <Answered query={series} lines={6}>
        {(loaded) => {
          const all = inOrder(loaded, senses);
          const shown = shownOf(all, queryOf('senses'));
          const alarms = happened.data?.alarms ?? [];
          return (
            <>
              {all.length > 1 && <SenseChoice all={all} shown={shown} nameOf={nameOf} />}
              {(all.length > 0 || queryOf('with') !== '') && (
                <ChartTools
                  uuid={uuid}
                  isBucketed={shown.some(({ widthMs }) => widthMs > 0)}
                  beside={beside.data ?? []}
                />
              )}
              {beside.error !== undefined && <Problem error={beside.error} retry={beside.reload} />}
              {all.length === 0 && located.length === 0 && (
                <Nothing isZoomed={range.name === null} />
              )}
              {shown.map((each) => (
                <SenseChart
                  key={each.sId}
                  name={nameOf(each.sId)}
                  sense={senses.get(each.sId)}
                  series={each}
                  others={linesOf(beside.data, each.sId, senses.get(each.sId))}
                  hasMean={hasMean()}
                  span={span}
                  profile={profile}
                  alarms={alarms}
                  former={former}
                  late={late.find(({ sId }) => sId === each.sId)}
                  onZoom={showSpan}
                  onPreview={setPreview}
                />
              ))}
              <Answered query={happened} lines={2}>
                {(data) => <Lanes happened={data} span={span} senses={senses} profile={profile} />}
              </Answered>
              <Positions uuid={uuid} range={range} senses={senses} profile={profile} />
              {(all.length > 0 || located.length > 0) && (
                <div class="chart-foot">
                  <p class="fine" id="chart-keys">
                    <span class="hint-keys">{t('chart.hint')}</span>
                    <span class="hint-touch">{t('chart.hintTouch')}</span>
                  </p>
                  <Link to={`record/${uuid}?month=${monthIdOf(range)}`} class="link">
                    {t('chart.month')}
                  </Link>
                  <CsvButton
                    devices={[{ uuid, name, senses }, ...othersOf(beside.data)]}
                    sIds={[...shown.map(({ sId }) => sId), ...located]}
                    span={range}
                  />
                </div>
              )}
            </>
          );
        }}
      </Answered>
    </section>
  );
}

/** The month of what is looked at: of its end. */
const monthIdOf = ({ end }: Span) => dayOf(end - 1, accountOf()?.timeZone).slice(0, 7);

/** The other devices in the charts that still exist. */
const othersOf = (all: readonly Beside[] = []): Named[] =>
  all.flatMap(({ uuid, name, isBefore, senses }) =>
    isBefore || senses === null || senses.size === 0 ? [] : [{ uuid, name, senses }],
  );

const noLines: readonly OtherLine[] = [];

/** Without a comparison always the same list, so that nothing is drawn again. */
const linesOf = (all: readonly Beside[] | undefined, sId: string, sense: Sense | undefined) =>
  all === undefined || all.length === 0 ? noLines : linesBeside(all, sId, sense);

/** In the order of the configuration. */
function inOrder(all: readonly Series[], senses: ReadonlyMap<string, Sense>): readonly Series[] {
  const order = [...senses.keys()];
  return all.toSorted((one, other) => order.indexOf(one.sId) - order.indexOf(other.sId));
}

function Nothing({ isZoomed }: { isZoomed: boolean }) {
  return isZoomed ? (
    <Empty icon="pulse" title={t('device.noHistory')} />
  ) : (
    <Empty icon="pulse" title={t('device.noHistory')} hint={t('device.nothingHint')} />
  );
}

/** The stream appends new values but not late ones, so read everything again. */
const everyMs = 60_000;

type HistoryQueries = {
  range: Range;
  series: Query<readonly Series[]>;
  happened: Query<Happened>;
  beside: Query<readonly Beside[]>;
};

/** The data of the range in the URL. A range that ends now moves on, and the stream adds to it. */
function useHistory(uuid: string): HistoryQueries {
  const [heardTs, setHeardTs] = useState(0);
  const range = readRange(Math.max(clock.value, heardTs));
  const isLive = range.name !== null;
  const key = `${uuid}/${range.name ?? `${range.start}-${range.end}`}`;
  const options = isLive ? { everyMs } : {};
  const series = useQuery(
    `series/${key}`,
    (signal) => loadSeries(uuid, readRange(now()), signal),
    options,
  );
  const happened = useQuery(
    `happened/${key}`,
    (signal) => loadHappened(uuid, readRange(now()), signal),
    options,
  );
  const beside = useBeside(uuid, key, { read: () => readRange(now()), isLive });
  useEffect(() => {
    if (!isLive) return undefined;
    return onStream((message) => {
      if (happensTo(uuid, message)) reload(`happened/${key}`);
      if (message.kind !== 'values') return;
      const values = message.values.filter(({ deviceAuthUuid }) => deviceAuthUuid === uuid);
      if (values.length === 0) return;
      const { start } = readRange(now());
      revise<readonly Series[]>(`series/${key}`, (all) => append(all, values, { start }));
      setHeardTs(now());
    });
  }, [key]);
  return {
    range,
    series: useKept(uuid, series),
    happened: useKept(uuid, happened),
    beside: useKept(uuid, beside),
  };
}

/** Shows the previous answer until there is a new one, for the same device. */
function useKept<T>(uuid: string, query: Query<T>): Query<T> {
  const kept = useRef<{ uuid: string; data: T }>(null);
  if (query.data !== undefined) kept.current = { uuid, data: query.data };
  if (query.data !== undefined || kept.current?.uuid !== uuid) return query;
  return { ...query, data: kept.current.data };
}

/** More than this would make the page too long to look through. */
const shownFirst = 4;

/** The senses that the URL asks for; the first ones if it names none. */
function shownOf(all: readonly Series[], asked: string): readonly Series[] {
  const names = asked.split(',');
  const found = all.filter(({ sId }) => names.includes(sId));
  return found.length > 0 ? found : all.slice(0, shownFirst);
}

type SenseChoiceProps = {
  all: readonly Series[];
  shown: readonly Series[];
  nameOf: (sId: string) => string;
};

/** Which senses are drawn: at least one. */
function SenseChoice({ all, shown, nameOf }: SenseChoiceProps) {
  const isShown = (sId: string) => shown.some((each) => each.sId === sId);
  const toggle = (sId: string) => {
    const next = all.filter((each) => isShown(each.sId) !== (each.sId === sId));
    const names = next.map((each) => each.sId).join(',');
    if (next.length > 0) setQuery({ senses: names }, { replace: true });
  };
  return (
    <div class="sense-choice" role="group" aria-label={t('chart.senses')}>
      {all.map(({ sId }) => (
        <button
          key={sId}
          type="button"
          class="range"
          aria-pressed={isShown(sId)}
          onClick={() => toggle(sId)}
        >
          {nameOf(sId)}
        </button>
      ))}
    </div>
  );
}
