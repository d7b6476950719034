import { useMemo, useRef } from 'preact/hooks';
import { lastMoveBefore, listAlarms, queryEvents } from '../../../api/events.ts';
import type { EventView, ListedAlarm, Sense } from '../../../api/types.ts';
import { queryOf, setQuery } from '../../../app/router.ts';
import type { StreamMessage } from '../../../app/stream.ts';
import { formatDuration, formatFullTime, formatNumber, formatTime } from '../../../text/format.ts';
import { count, t } from '../../../text/t.ts';
import { beganOf, overOf } from '../../alarms/about.ts';
import { sayEvent, titleOf } from '../events-tab.tsx';
import type { CurrentProfile } from '../tab.ts';
import { useWidth } from './plot.tsx';
import { type Cluster, clusters, type Segment, type Span, statesOf } from './points.ts';
import { alarmSpans, thin } from './series.ts';

type LanesProps = {
  happened: Happened;
  span: Span;
  senses: ReadonlyMap<string, Sense>;
  profile: CurrentProfile | null;
};

/** States, alarms and events on the time axis of the charts above. */
export function Lanes({ happened, span, senses, profile }: LanesProps) {
  const { events, isCut, alarms } = happened;
  const states = useMemo(
    () => statesOf(happened, span, profile, (id) => t('chart.state', { id })),
    [happened, profile, span.start, span.end],
  );
  const rung = alarmSpans(alarms, span);
  const isNamed = states.length > 1 || (profile?.purposes[0]?.states.length ?? 0) > 1;
  if (!isNamed && rung.length === 0 && events.length === 0) return null;
  return (
    <div class="lanes">
      {states.length > 0 && isNamed && (
        <Strip label={t('chart.states')} segments={states} span={span} look="state" />
      )}
      {rung.length > 0 && (
        <Strip label={t('chart.alarms')} segments={rung} span={span} look="alarm" />
      )}
      {events.length > 0 && <Marks {...{ events, isCut, span, senses, profile }} />}
    </div>
  );
}

type StripProps = {
  label: string;
  segments: readonly Segment[];
  span: Span;
  look: 'state' | 'alarm' | 'switch';
};

/** Keeps a segment visible at the end of the strip; the same as in chart.css. */
const leastPx = 3;

/** Consecutive spans of time, below the plots and as wide as they are. A summary says the same to a screen reader. */
export function Strip({ label, segments, span, look }: StripProps) {
  return (
    <div class="lane">
      <p class="lane-name">{label}</p>
      <div class={`strip strip-${look}`} role="img" aria-label={summaryOf(label, segments, span)}>
        {thin(segments, span).map(({ start, end, text, tone }) => {
          const said = `${text}, ${formatTime(start)} – ${formatTime(end)}`;
          const left = `min(${partOf(start, span)}, calc(100% - ${leastPx}px))`;
          const place = { left, width: partOf(end, span, start) };
          return (
            <div key={`${start}-${text}`} class={`part tone-${tone}`} style={place} title={said}>
              <span>{text}</span>
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** How long each text applied within the span, and how often: "Door: on 40 min, 3 times; off 23 hr 20 min". */
function summaryOf(label: string, segments: readonly Segment[], span: Span): string {
  const inSpan = segments.filter(({ start, end }) => end > span.start && start < span.end);
  const parts = [...Map.groupBy(inSpan, ({ text }) => text)].map(([text, own]) => {
    const ms = own
      .map(({ start, end }) => Math.min(end, span.end) - Math.max(start, span.start))
      .reduce((sum, each) => sum + each, 0);
    const time = formatDuration(ms);
    if (own.length === 1) return t('chart.partOf', { text, time });
    return t('chart.partsOf', { text, time, count: formatNumber(own.length) });
  });
  return `${label}: ${parts.join('; ')}`;
}

/** A time, or its distance from another one, as a share of the width. */
const partOf = (ts: number, { start, end }: Span, from = start): string =>
  `${((ts - from) / (end - start)) * 100}%`;

type MarksProps = {
  /** Newest first. */
  events: readonly EventView[];
  isCut: boolean;
  span: Span;
  senses: ReadonlyMap<string, Sense>;
  profile: CurrentProfile | null;
};

const markPx = 24;

/** Events as marks; opening one shows what happened and why. Marks that would overlap are merged. */
function Marks({ events, isCut, span, senses, profile }: MarksProps) {
  const lane = useRef<HTMLOListElement>(null);
  const width = useWidth(lane, 600);
  const groups = clusters(events, span, markPx / Math.max(width, markPx));
  const asked = queryOf('event');
  const open = groups.find((group) => group.events.some(({ eventId }) => eventId === asked));
  return (
    <div class="lane">
      <p class="lane-name">
        {t('device.events')}
        {isCut && (
          <span class="fine"> {t('chart.eventsCut', { most: formatNumber(events.length) })}</span>
        )}
      </p>
      <ol class="marks" ref={lane} aria-label={t('device.events')}>
        {groups.map((group) => (
          <Mark
            key={group.events[0]?.eventId}
            {...{ group, span, profile }}
            isOpen={group === open}
          />
        ))}
      </ol>
      {open && <Opened cluster={open} senses={senses} profile={profile} />}
    </div>
  );
}

type MarkProps = { group: Cluster; span: Span; profile: CurrentProfile | null; isOpen: boolean };

function Mark({ group: { ts, events }, span, profile, isOpen }: MarkProps) {
  const [newest] = events;
  if (!newest) return null;
  const what =
    events.length === 1 ? titleOf(newest, profile) : count('chart.events', events.length);
  const choose = () => setQuery({ event: isOpen ? '' : newest.eventId }, { replace: true });
  return (
    <li style={{ left: partOf(ts, span) }}>
      <button
        type="button"
        class={`mark mark-${newest.type}`}
        aria-expanded={isOpen}
        aria-label={`${what}, ${formatTime(newest.timestamp)}`}
        title={`${what}, ${formatTime(newest.timestamp)}`}
        onClick={choose}
      >
        {events.length > 1 && (events.length > 99 ? '99' : events.length)}
      </button>
    </li>
  );
}

const mostSaid = 8;

function Opened({
  cluster: { events },
  senses,
  profile,
}: Pick<MarksProps, 'senses' | 'profile'> & { cluster: Cluster }) {
  const rest = events.length - mostSaid;
  return (
    <div class="opened" role="status">
      <ul>
        {events.slice(0, mostSaid).map((event) => (
          <li key={event.eventId}>
            <p class="event-title">
              {titleOf(event, profile)} <time class="fine">{formatFullTime(event.timestamp)}</time>
            </p>
            {sayEvent(event, senses).map((sentence) => (
              <p key={sentence} class="event-why">
                {sentence}
              </p>
            ))}
          </li>
        ))}
      </ul>
      {rest > 0 && <p class="fine">{count('chart.moreEvents', rest)}</p>}
      <button type="button" class="link" onClick={() => setQuery({ event: '' }, { replace: true })}>
        {t('common.close')}
      </button>
    </div>
  );
}

/** What happened to a device in a span. */
export type Happened = {
  /** Newest first. */
  events: readonly EventView[];
  /** There were more, older ones. */
  isCut: boolean;
  /** Its last change of state before the span; null if none is known. */
  before: EventView | null;
  alarms: readonly ListedAlarm[];
};

/** Nobody can tell more marks than this apart. */
const mostEvents = 500;
const alarmPages = 3;

export async function loadHappened(
  uuid: string,
  span: Span,
  signal: AbortSignal,
): Promise<Happened> {
  const start = Math.floor(span.start);
  const end = Math.ceil(span.end);
  const [{ events, isCut }, before, alarms] = await Promise.all([
    queryEvents(uuid, { start, end, most: mostEvents }, signal),
    lastMoveBefore(uuid, start, signal),
    listAlarmsOf(uuid, span, signal),
  ]);
  return { events, isCut, before, alarms };
}

/** Alarms that were open at some time in the span, among the newest 300 of the device. */
async function listAlarmsOf(uuid: string, span: Span, signal: AbortSignal): Promise<ListedAlarm[]> {
  const found: ListedAlarm[] = [];
  let cursor = '';
  for (let page = 0; page < alarmPages; page += 1) {
    const filter = { state: '', device: uuid, cursor, limit: 100 };
    const { body, next } = await listAlarms(filter, signal);
    found.push(...body.alarms);
    if (next === null) break;
    cursor = next;
  }
  return found.filter(
    (alarm) => beganOf(alarm) < span.end && (overOf(alarm) ?? span.end) > span.start,
  );
}

/** Whether the message is an event or an alarm of the device. */
export function happensTo(uuid: string, message: StreamMessage): boolean {
  if (message.kind === 'event') return message.event.deviceAuthUuid === uuid;
  return message.kind === 'alarm' && message.deviceAuthUuid === uuid;
}
