import type { EventView, ListedAlarm } from '../../../api/types.ts';
import { formatNumber } from '../../../text/format.ts';
import { t } from '../../../text/t.ts';
import type { CurrentProfile } from '../tab-props.ts';
import { gapOf } from './columns.ts';
import type { Happened } from './happened.ts';
import type { Span } from './span.ts';
import type { Series } from './point.ts';

/** A part of a strip. `tone`: which of the strip's colours; the text says the same. */
export type Segment = Span & { text: string; tone: number };

type Place = { puId: number; stId: number };
const tones = 4;

/** The places that the device was in, over time. */
export function statesOf(
  { events, before, isCut }: Happened,
  span: Span,
  profile: CurrentProfile | null,
): Segment[] {
  const moves = events.filter((event) => event.type === 'device').toReversed();
  const names = placeNames(profile);
  const segments: Segment[] = [];
  const toneOf = new Map<string, number>();
  let ts = isCut ? (moves[0]?.timestamp ?? span.end) : span.start;
  let place = before
    ? placeAfter(before, profile)
    : moves[0]
      ? placeBefore(moves[0], profile)
      : null;
  const close = (end: number) => {
    if (place === null || end <= ts) return;
    const name = names(place);
    const tone = toneOf.get(name) ?? toneOf.size % tones;
    toneOf.set(name, tone);
    const last = segments.at(-1);
    if (last?.text === name && last.end === ts) last.end = end;
    else segments.push({ start: ts, end, text: name, tone });
  };
  for (const move of moves) {
    close(move.timestamp);
    ts = Math.max(ts, move.timestamp);
    place = placeAfter(move, profile);
  }
  // Without any move the state that it is in now is the one of its first purpose.
  if (place === null && profile) place = firstPlace(profile);
  close(span.end);
  return segments;
}

type Move = Extract<EventView, { type: 'device' }>;

function placeAfter(event: EventView, profile: CurrentProfile | null): Place | null {
  if (event.type !== 'device') return null;
  const { event: kind, newValue } = event;
  const { puId, stId } = event.cause.engine;
  if (kind !== 'purposeChanged') return { puId, stId: newValue };
  // A reported move names the place that was entered; one of the service's the event that caused it.
  return { puId: newValue, stId: puId === newValue ? stId : initialOf(newValue, profile) };
}

function placeBefore(
  { event: kind, oldValue, cause }: Move,
  profile: CurrentProfile | null,
): Place {
  const { puId } = cause.engine;
  return kind === 'purposeChanged'
    ? { puId: oldValue, stId: initialOf(oldValue, profile) }
    : { puId, stId: oldValue };
}

const initialOf = (puId: number, profile: CurrentProfile | null): number =>
  profile?.purposes.find((purpose) => purpose.puId === puId)?.initStId ?? 0;

function firstPlace({ purposes: [first] }: CurrentProfile): Place | null {
  return first ? { puId: first.puId, stId: first.initStId } : null;
}

/** With the purpose's name where there are several. */
function placeNames(profile: CurrentProfile | null): (place: Place) => string {
  const purposes = profile?.purposes ?? [];
  return ({ puId, stId }) => {
    const purpose = purposes.find((each) => each.puId === puId);
    const state = purpose?.states.find((each) => each.stId === stId);
    const name = state?.name || t('chart.state', { id: stId });
    return purposes.length > 1 ? `${purpose?.name || puId}: ${name}` : name;
  };
}

/** When alarms were open. */
export function alarmSpans(alarms: readonly ListedAlarm[], span: Span): Segment[] {
  return alarms
    .map(({ sinceTs, closedTs, eventName }) => ({
      start: Math.max(sinceTs, span.start),
      end: Math.min(closedTs ?? span.end, span.end),
      text: eventName || t('chart.alarm'),
      tone: 0,
    }))
    .toSorted((one, other) => one.start - other.start);
}

/** A sense of few values as a strip: on and off, or a number of a list. */
export function valueSegments(series: Series, isSwitch: boolean): Segment[] {
  const { points, widthMs } = series;
  const gapMs = gapOf(series);
  const segments: Segment[] = [];
  for (const [place, { ts, min, max, last }] of points.entries()) {
    const nextTs = points[place + 1]?.ts ?? Number.POSITIVE_INFINITY;
    const end = nextTs - ts > gapMs ? ts + Math.max(widthMs, gapMs / 3) : nextTs;
    const isMixed = min !== max;
    const text = isMixed ? t('chart.mixed') : isSwitch ? sayOn(last) : formatNumber(last);
    const tone = isMixed ? tones : Math.abs(last) % tones;
    const before = segments.at(-1);
    if (before?.text === text && before.end >= ts) before.end = end;
    else segments.push({ start: ts, end, text, tone });
  }
  return segments;
}

const sayOn = (value: number) => t(value === 0 ? 'chart.off' : 'chart.on');

/** So narrow parts are not told apart. */
const leastPart = 0.002;

/** What of it lies in the span; parts that are too narrow to be seen become one. */
export function thin(segments: readonly Segment[], { start, end }: Span): Segment[] {
  const leastMs = (end - start) * leastPart;
  const shown: Segment[] = [];
  for (const segment of segments) {
    if (segment.end < start || segment.start > end) continue;
    const part = {
      ...segment,
      start: Math.max(segment.start, start),
      end: Math.min(segment.end, end),
    };
    const last = shown.at(-1);
    const isNarrow = (each: Span) => each.end - each.start < leastMs;
    if (last && isNarrow(part) && isNarrow(last) && part.start - last.end < leastMs) {
      last.end = part.end;
      if (last.text !== part.text) Object.assign(last, { text: t('chart.mixed'), tone: tones });
    } else shown.push(part);
  }
  return shown;
}
