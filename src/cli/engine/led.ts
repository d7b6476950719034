import { asksForMove } from '../../contract/actions.ts';
import type { CauseDetail, CauseSense, DeviceEvent, EventName } from '../../contract/event.ts';
import type { Place } from '../../contract/place.ts';
import type { Evaluated, Firing, Tells, Transition } from '../../engine/outcome.ts';

/** A move, and what records it: null where the device entered the state it was in. */
export type Moved = Place & {
  event:
    | (Pick<DeviceEvent, 'event' | 'oldValue' | 'newValue'> & {
        engine: EventName & { ts: number };
      })
    | null;
};

export type Fired = EventName & {
  name: string;
  record: boolean;
  tells: Tells;
  /** Whether people are told, where only the episode could be against it. */
  ring: boolean;
  first: boolean;
  ts: number;
  ageMs: number;
  senses: CauseSense[];
  why: CauseDetail[];
};

/** What one measurement, or one tick, led to, with the members that vectors have (test/vectors/README.md), and more. */
export type Led = { fires: Fired[]; ended: EventName[]; shows: string[]; moves?: Moved };

export function ledBy({ firings, ended, transition }: Evaluated): Led {
  return {
    fires: firings.map((firing) => firedOf(firing, transition)),
    ended,
    shows: firings.flatMap(({ actions }) => actions.display?.showText ?? []),
    ...(transition && { moves: movedOf(transition.to, transition.event ?? null) }),
  };
}

/** Whether there is anything to tell. */
export const isSomething = ({ fires, ended, moves }: Led): boolean =>
  fires.length > 0 || ended.length > 0 || moves !== undefined;

export function movedOf({ puId, stId }: Place, event: DeviceEvent | null): Moved {
  if (!event) return { puId, stId, event };
  const { oldValue, newValue, cause } = event;
  const { pId: _pId, ...engine } = cause.engine;
  return { puId, stId, event: { event: event.event, oldValue, newValue, engine } };
}

function firedOf(
  { event, name, record, actions, tells, isFirst: first, ageMs }: Firing,
  transition: Transition | undefined,
): Fired {
  const { puId, stId, evId } = event.cause.engine;
  // A notice of a move is told where the device came from another state. The move may be another event's.
  const isReentry = asksForMove(actions) && transition !== undefined && !transition.event;
  const ring = (tells === 'notice' && !isReentry) || (tells === 'alarm' && first);
  const { senses } = event.cause;
  const { ts, why = [] } = event;
  return { puId, stId, evId, name, record, tells, ring, first, ts, ageMs, senses, why };
}
