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

/** The push and SMS of an event that rings: one SMS a number, and one push that is for every token. */
export function notificationsOf({ device, event, actions, name }: Ringing): NewNotification[] {
  const { accountId, deviceId, uuid: deviceUuid } = device;
  const asked = { accountId, deviceId, deviceUuid, event };
  const notifications: NewNotification[] = [];
  if (actions.cloud?.sendPush) notifications.push({ ...asked, kind: 'push', name: name ?? '' });
  const { text, phoneNumber = [] } = actions.sms ?? {};
  for (const number of new Set(text ? phoneNumber : [])) {
    notifications.push({ ...asked, kind: 'sms', phoneNumber: number, text: text ?? '' });
  }
  return notifications;
}
