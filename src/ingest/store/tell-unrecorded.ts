import type { Rejection } from '../../contract/rejection.ts';
import type { Work } from '../queue/device-queue.ts';
import type { Plan } from './plan.ts';

export type UsedUp = 'eventsPerDay' | 'eventsPerSecond';

const until: Record<UsedUp, string> = {
  eventsPerDay: ', nor are further ones today (UTC)',
  eventsPerSecond: ': they came too many at once',
};

/** Has a device told how many events of its own messages were not recorded. */
export function tellUnrecorded(
  { rows }: Plan,
  { queue, units }: Work,
  messageId: string,
  count: number,
  quota: UsedUp,
): void {
  const { deviceId, uuid } = queue.device;
  const { topic, arrivedTs: ts } = units[0]?.message.uplink ?? { topic: '', arrivedTs: 0 };
  const rejection: Rejection = {
    reason: 'events-not-recorded',
    message: `The account's quota ${quota} is used up: ${count} events of this device were not recorded${until[quota]}. This is said once a minute.`,
  };
  const row = { messageId, item: -1, payload: '', ts, topic };
  rows.rejections.push({ ...rejection, ...row, deviceId });
  const payload = { topic, ...rejection, ts };
  rows.effects.push({ kind: 'down', uuid, message: { topic: 'errors', payload } });
}
