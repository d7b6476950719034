import type { SenseEvent } from '../event.ts';
import type { NewNotification } from '../notification.ts';
import type { DeviceIdentity, Downlink } from '../uplink.ts';

/** A firing whose actions are carried out. `name` is the event's in its purpose, empty where it has none. */
export type Fired = { device: DeviceIdentity; event: SenseEvent; name: string };

/**
 * One kind of action, in terms of `A`, the members of `actions` that are its own. Whom it reaches says
 * when it is carried out, and how it makes what it leads to:
 * - `history`: with every firing; the event is recorded.
 * - `people`: with the first firing of an episode that is no backlog; made lazily, for there may be many.
 * - `device`: with every firing, after the commit.
 * - `engine`: with every firing; the evaluator moves the device (`move.ts`).
 * - `alarms`: with every firing; opens an alarm, or goes on with it.
 */
export type Action<A> = {
  name: string;
  /** Whether an event with these actions asks for it. */
  isAsked(actions: A): boolean;
} & (
  | { reaches: 'history' | 'engine' | 'alarms' }
  | { reaches: 'people'; notifications(actions: A, fired: Fired): Iterable<NewNotification> }
  | { reaches: 'device'; message(actions: A, fired: Fired): Downlink }
);
