import type { AlignedData } from 'uplot';
import type { BucketView, EventView, Sense } from '../../../api/types.ts';
import type { CurrentProfile } from '../tab.ts';

/** A single moment, or a bucket that starts at `ts`. */
export type Point = Pick<BucketView, 'ts' | 'min' | 'max' | 'avg' | 'last' | 'count'>;

/** What a sense measured, oldest first. `widthMs`: the width of its buckets; 0: single values. */
export type Series = { sId: string; widthMs: number; points: readonly Point[] };

/** Times in ms. */
export type Span = { start: number; end: number };

/** Reads no clock: converts a time of the chart, ms, for uPlot and for ISO 8601. */
// oxlint-disable-next-line no-restricted-globals -- a given time
export const dateOf = (ts: number): Date => new Date(ts);

/** `switch`: 0 and 1. `list`: a few whole numbers, such as modes. `number`: drawn as a line. */
type Kind = 'switch' | 'list' | 'number';

const mostListed = 8;

/** How a sense is shown. Its range decides if it has one, and its values must agree. */
export function kindOf(sense: Sense | undefined, { points }: Pick<Series, 'points'>): Kind {
  const { min, max, unit, decimals = 0 } = sense ?? {};
  if (min === undefined || max === undefined || unit || decimals > 0) return 'number';
  const isListed = Number.isInteger(min) && Number.isInteger(max) && max - min < mostListed;
  if (!isListed) return 'number';
  if (!points.every((point) => Number.isInteger(point.min) && Number.isInteger(point.max)))
    return 'number';
  return min === 0 && max === 1 ? 'switch' : 'list';
}

/** A part of a strip. `tone`: one of the strip's colours; the text says the same. */
export type Segment = Span & { text: string; tone: number };

/** The state of a device, by the numbers in its profile. */
type Place = { pId: string; puId: number; stId: number };
type Move = Extract<EventView, { type: 'device' }>;

type Moved = {
  /** Newest first. */
  events: readonly EventView[];
  /** There were more, older ones. */
  isCut: boolean;
  /** The last change of state before the span; null if none is known. */
  before: EventView | null;
};

const tones = 4;

/** The states that the device was in, over time. `say` names a state of a profile that is no longer installed. */
export function statesOf(
  moved: Moved,
  span: Span,
  profile: CurrentProfile | null,
  say: (id: string) => string,
): Segment[] {
  const moves = moved.events.filter((event) => event.type === 'device').toReversed();
  const toneOf = new Map<string, number>();
  const segments: Segment[] = [];
  let { place, ts } = beginOf(moved, moves[0], span, profile);
  const close = (end: number) => {
    if (place === null || end <= ts) return;
    const text = nameOf(place, profile, say);
    const tone = toneOf.get(text) ?? toneOf.size % tones;
    toneOf.set(text, tone);
    const last = segments.at(-1);
    if (last?.text === text && last.end === ts) last.end = end;
    else segments.push({ start: ts, end, text, tone });
  };
  for (const move of moves) {
    close(move.timestamp);
    ts = Math.max(ts, move.timestamp);
    place = placeAfter(move, profile);
  }
  close(span.end);
  return segments;
}

/** The first known state, and since when. */
function beginOf(
  { events, before, isCut }: Moved,
  first: Move | undefined,
  span: Span,
  profile: CurrentProfile | null,
): { place: Place | null; ts: number } {
  const oldest = events.at(-1);
  if (isCut)
    return { place: first ? placeBefore(first, profile) : null, ts: oldest?.timestamp ?? span.end };
  if (before?.type === 'device') return { place: placeAfter(before, profile), ts: span.start };
  // It has been in a state since it got the profile.
  const ts = Math.max(span.start, profile?.ts ?? span.start);
  if (first) return { place: placeBefore(first, profile), ts: Math.min(ts, first.timestamp) };
  return { place: profile && firstPlace(profile), ts };
}

/** The state of a device after a change. */
export function placeAfter(
  { event, newValue, cause }: Move,
  profile: CurrentProfile | null,
): Place {
  const { pId, puId, stId } = cause.engine;
  if (event !== 'purposeChanged') return { pId, puId, stId: newValue };
  // A reported change names the state entered; one of the service's names the state of the event that caused it.
  const entered = puId === newValue ? stId : initialOf(newValue, profile);
  return { pId, puId: newValue, stId: entered };
}

function placeBefore({ event, oldValue, cause }: Move, profile: CurrentProfile | null): Place {
  const { pId, puId } = cause.engine;
  return event === 'purposeChanged'
    ? { pId, puId: oldValue, stId: initialOf(oldValue, profile) }
    : { pId, puId, stId: oldValue };
}

const initialOf = (puId: number, profile: CurrentProfile | null): number =>
  profile?.purposes.find((purpose) => purpose.puId === puId)?.initStId ?? 0;

function firstPlace({ pId, purposes: [first] }: CurrentProfile): Place | null {
  return first ? { pId, puId: first.puId, stId: first.initStId } : null;
}

/**
 * The name of a state, with the purpose's name if there are several. `say` names a state of a profile that is no longer
 * installed, because another profile's numbers mean something else.
 */
export function nameOf(
  { pId, puId, stId }: Place,
  profile: CurrentProfile | null,
  say: (id: string) => string,
): string {
  const purposes = profile?.pId === pId ? profile.purposes : [];
  const purpose = purposes.find((each) => each.puId === puId);
  const state = purpose?.states.find((each) => each.stId === stId);
  const name = state?.name || say(state ? String(stId) : `${puId}:${stId}`);
  return purposes.length > 1 ? `${purpose?.name || puId}: ${name}` : name;
}

/** The line bridges this many buckets without a value, because a device may be a little late. */
const bridged = 2;
/** A step longer than this many usual ones counts as a gap. */
const late = 3;

/**
 * Columns as uPlot takes them: seconds, mean, smallest, largest; oldest first. A column of nulls makes a gap where
 * nothing was measured for longer than usual.
 */
export function toColumns({ points, widthMs }: Pick<Series, 'points' | 'widthMs'>): AlignedData {
  const longestMs = gapOf({ points, widthMs });
  const times: number[] = [];
  const columns: (number | null)[][] = [[], [], []];
  let beforeTs = Number.NaN;
  const add = (ts: number, ...values: (number | null)[]) => {
    times.push(ts / 1_000);
    for (const [place, value] of values.entries()) columns[place]?.push(value);
  };
  for (const { ts, avg, min, max } of points) {
    if (ts - beforeTs > longestMs) add((ts + beforeTs) / 2, null, null, null);
    add(ts, avg, min, max);
    beforeTs = ts;
  }
  return [times, ...columns];
}

/** The values of a line; undefined where another line of the chart has a value and this one has none: no gap. */
type Column = ArrayLike<number | null | undefined>;

/** Places of values without neighbours. */
export function alonePlaces(values: Column): number[] {
  const own = Array.from(values, (_, place) => place).filter(
    (place) => values[place] !== undefined,
  );
  const isThere = (nth: number) => typeof values[own[nth] ?? -1] === 'number';
  return own.filter((_, nth) => isThere(nth) && !isThere(nth - 1) && !isThere(nth + 1));
}

/** The value of a line at a place: its own, or the last one before, or the next; null in a gap and if there is none. */
export function valueAt(values: Column, place: number): number | null {
  for (let at = place; at >= 0; at -= 1) {
    const value = values[at];
    if (value !== undefined) return value;
  }
  for (let at = place + 1; at < values.length; at += 1) {
    const value = values[at];
    if (value !== undefined) return value;
  }
  return null;
}

/** How long nothing must be measured to make a gap, ms. */
export function gapOf({ points, widthMs }: Pick<Series, 'points' | 'widthMs'>): number {
  return Math.max(widthMs * bridged, usualStep(points) * late);
}

/**
 * Since when a device can have measured. It may have before it was added, but not in the part of its first bucket of
 * `widthMs` that was before that. `firstTs`: of that bucket.
 */
export function knownFrom(
  registeredTs: number,
  { firstTs = registeredTs, widthMs }: { firstTs: number | undefined; widthMs: number },
): number {
  return firstTs + widthMs > registeredTs ? registeredTs : firstTs;
}

/**
 * When nothing was measured for at least three buckets, and at least three times as long as usual, within a span. It is
 * exact to a bucket.
 */
export function gapsIn(series: Pick<Series, 'points' | 'widthMs'>, span: Span): Span[] {
  const { points, widthMs } = series;
  // Also of one value alone, of which nobody knows how often it comes.
  const longestMs = Math.max(gapOf(series), widthMs * late);
  let from = span.start;
  const gaps: Span[] = [];
  for (const ts of [...points.map((point) => point.ts), span.end]) {
    if (ts - from >= longestMs) gaps.push({ start: from, end: ts });
    from = Math.max(from, Math.min(ts + widthMs, span.end));
  }
  return gaps;
}

/** The median step between points, ms: a sense that measures hourly has no gaps between hours. */
function usualStep(points: readonly Point[]): number {
  const steps = points.slice(1).map(({ ts }, place) => ts - (points[place]?.ts ?? ts));
  return steps.sort((a, b) => a - b)[Math.floor(steps.length / 2)] ?? 0;
}

/** Events that share a mark, newest first. `ts`: the mark's position. */
export type Cluster = { ts: number; events: EventView[] };

/** Merges events that are closer than a given share of the span. `events`: newest first. */
export function clusters(
  events: readonly EventView[],
  { start, end }: Span,
  closest: number,
): Cluster[] {
  const leastMs = (end - start) * closest;
  const found: Cluster[] = [];
  for (const event of events) {
    const { timestamp } = event;
    if (timestamp < start || timestamp > end) continue;
    const last = found.at(-1);
    if (last && last.ts - timestamp < leastMs) last.events.push(event);
    else found.push({ ts: timestamp, events: [event] });
  }
  return found;
}

/** A limit farther away than this many times the range of the values would flatten them. */
const farthest = { alarm: 5, other: 2 };

/** A limit: whether it opens an alarm. */
type Level = { value: number; isAlarm: boolean };
type View = { limits: readonly Level[]; alarms: readonly Span[]; span: Span };

/**
 * The range of the values and of limits that are near; those of alarms may be farther away. If an alarm was open in the
 * span, the nearest alarm limit is included too, because the reader looks for it.
 */
export function inView(min: number, max: number, { limits, alarms, span }: View): [number, number] {
  const room = Math.max(max - min, Math.abs(max) / 10);
  const near = limits
    .filter(({ value, isAlarm }) => {
      const reach = room * (isAlarm ? farthest.alarm : farthest.other);
      return value > min - reach && value < max + reach;
    })
    .map(({ value }) => value);
  if (alarms.some(({ start, end }) => start < span.end && end > span.start)) {
    const distance = ({ value }: Level) => Math.max(min - value, value - max);
    const [nearest] = limits
      .filter(({ isAlarm }) => isAlarm)
      .toSorted((one, other) => distance(one) - distance(other));
    if (nearest) near.push(nearest.value);
  }
  return [Math.min(min, ...near), Math.max(max, ...near)];
}
