import type { Fired } from '../contract/actions/action.ts';
import { notificationsAsked } from '../contract/actions/actions.ts';
import type { Actions } from '../contract/actions/actions.ts';
import type { NewNotification } from '../contract/notification.ts';

/** An event that rings, with the actions of its purpose. */
export type Ringing = Fired & { actions: Actions };

/** What people are told of events that ring; made one by one: one message of a device may ask for tens of thousands. */
export function* notificationsOf(rings: Iterable<Ringing>): Iterable<NewNotification> {
  for (const ring of rings) yield* notificationsAsked(ring.actions, ring);
}
