import type { EventView } from '../../../api/types.ts';
import type { CurrentProfile } from '../tab.ts';
import type { Span } from './span.ts';

/** A part of a strip. `tone`: which of the strip's colours; the text says the same. */
export type Segment = Span & { text: string; tone: number };

/** Where a device is, by its profile's numbers. */
type Place = { pId: string; puId: number; stId: number };
type Move = Extract<EventView, { type: 'device' }>;

export type Moved = {
  /** Newest first. */
  events: readonly EventView[];
  /** There were more, older ones. */
  isCut: boolean;
  /** The last move before the span; null: none is known. */
  before: EventView | null;
};

const tones = 4;

/** The places that the device was in, over time. `say` names a state of a profile that is no longer there. */
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

/** The first place that is known, and from when on. */
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
  // It is in a place since it has the profile.
  const ts = Math.max(span.start, profile?.ts ?? span.start);
  if (first) return { place: placeBefore(first, profile), ts: Math.min(ts, first.timestamp) };
  return { place: profile && firstPlace(profile), ts };
}

/** Where a device is after a move. */
export function placeAfter(
  { event, newValue, cause }: Move,
  profile: CurrentProfile | null,
): Place {
  const { pId, puId, stId } = cause.engine;
  if (event !== 'purposeChanged') return { pId, puId, stId: newValue };
  // A reported move names the place that was entered; one of the service's the event that caused it.
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

/** With the purpose's name where there are several. Numbers of another profile mean something else. */
/** What a place is called in the profile; `say` names one of a profile that is no longer there. */
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
