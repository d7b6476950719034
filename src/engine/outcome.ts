import type { Actions } from '../contract/actions.ts';
import type { DeviceEvent, EventName, SenseEvent } from '../contract/event.ts';
import type { Place } from '../contract/place.ts';

/** When a measurement counts: `t` is the time at which it is taken, `arrivedTs` when the service read it. Ms. */
export type Moment = { t: number; arrivedTs: number };

/**
 * Whom an event's firings concern: a `notice` is told each time and not kept; a `silent-alarm` is kept, and nobody is told.
 */
export type Tells = 'nobody' | 'notice' | 'alarm' | 'silent-alarm';

/** An event that fired. */
export type Firing = {
  event: SenseEvent;
  /** The event's name in its purpose, empty where it has none. */
  name: string;
  record: boolean;
  actions: Actions;
  tells: Tells;
  /** The first of its episode; always, where the event has none (`nobody`, `notice`). */
  isFirst: boolean;
  /**
   * How old the measurement that completed it was at its arrival, ms; of a tick the newest measurement of the cause that
   * it completes; 0 of a silence.
   */
  ageMs: number;
};

/** The device moved; no `event` where it entered the state it was in. */
export type Transition = { to: Place; event?: DeviceEvent };

/** What one measurement, or one tick, led to. */
export type Evaluated = {
  firings: Firing[];
  transition?: Transition;
  /** Episodes that ended, because a cause disagreed. One of an event that is among `firings` ended before that. */
  ended: EventName[];
  /** When the measurement arrived; of a tick when it was due. */
  arrivedTs: number;
};
