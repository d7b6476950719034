import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useQuery } from '../../api/cache.ts';
import { listFewPoints } from '../../api/measurements.ts';
import type { Sense } from '../../api/types.ts';
import type { Played, Values } from '../../engine/play.ts';
import { Answered } from '../../parts/panel.tsx';
import { formatTime, formatValue } from '../../text/format.ts';
import { count } from '../../text/t.ts';
import { Plot, type Scale } from '../device/chart/plot.tsx';
import type { Series, Span } from '../device/chart/points.ts';
import { loadSeries, toPoints } from '../device/chart/series.ts';
import { readCause, type Sentence, writeCause } from './cause.ts';
import {
  groupsOf,
  type Path,
  pathOf,
  placeOfCause,
  type Rule,
  type RuleEvent,
  type Selected,
  valueAt,
  withAt,
} from './document.ts';
import { nameOfEvent } from './event-form.tsx';
import { text } from './texts.ts';

/** With more values the page does not follow a limit that is moved; the service plays it when it is let go. */
const mostValues = 20_000;

/** The condition of the selected event, or of the first one, that has a limit to move; and where it is. */
function limitOf(rule: Rule, selected: Selected | null) {
  const events = rule.states.flatMap(({ stId, events: own }) =>
    own.map((event) => ({ at: { stId, evId: event.evId }, event })),
  );
  const isSelected = ({ at }: { at: Required<Selected> }) =>
    at.stId === selected?.stId && at.evId === selected.evId;
  for (const { at, event } of [...events.filter(isSelected), ...events])
    for (const { cause, place } of causesOf(event)) {
      const sentence = readCause(cause);
      const value = sentence?.least ?? sentence?.most;
      const isPlain = sentence?.subject === 'value' || sentence?.subject === 'avg';
      if (sentence && value !== undefined && isPlain)
        return { sentence, value, event, path: [...(pathOf(rule, at) ?? []), ...place] };
    }
  return null;
}

/** All conditions of an event, and where they are in it. */
const causesOf = (event: RuleEvent) =>
  groupsOf(event).flatMap((group, g) =>
    group.map((cause, c) => ({ cause, place: placeOfCause(event, g, c) })),
  );

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

type TryChartProps = {
  rule: Rule;
  selected: Selected | null;
  /** Whose values are drawn and played. */
  uuid: string;
  senses: ReadonlyMap<string, Sense>;
  span: Span;
  onChange: (rule: Rule, key?: string) => void;
};

/** The values of a device with a limit of the rule, which can be moved: then the rule is played again in the page. */
export function TryChart({ uuid, span, ...others }: TryChartProps) {
  const sIds = [
    ...new Set(
      others.rule.states.flatMap(({ events }) =>
        events.flatMap((event) =>
          groupsOf(event)
            .flat()
            .flatMap(({ sId }) => (typeof sId === 'string' && sId !== '' ? [sId] : [])),
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
