import type { SenseEvent } from '../core/event.ts';
import type { Actions } from '../core/purpose.ts';
import type { DeviceIdentity } from '../core/uplink.ts';
import type { NewNotification } from './schema.ts';

/** An event that rings, with the actions of its purpose. `name` is the event's. */
export type Ringing = {
  device: DeviceIdentity;
  event: SenseEvent;
  actions: Actions;
  name?: string | undefined;
};

/**
 * The push and SMS of events that ring: one SMS a number, and one push that is for every token. Made one
 * by one: one message of a device may ask for tens of thousands.
 */
export function* notificationsOf(rings: Iterable<Ringing>): Iterable<NewNotification> {
  for (const ring of rings) yield* ofOne(ring);
}

function* ofOne({ device, event, actions, name }: Ringing): Iterable<NewNotification> {
  const { accountId, deviceId, uuid: deviceUuid } = device;
  const asked = { accountId, deviceId, deviceUuid, event };
  if (actions.cloud?.sendPush) yield { ...asked, kind: 'push', name: name ?? '' };
  const { text, phoneNumber = [] } = actions.sms ?? {};
  for (const number of new Set(text ? phoneNumber : [])) {
    yield { ...asked, kind: 'sms', phoneNumber: number, text: text ?? '' };
  }
}
