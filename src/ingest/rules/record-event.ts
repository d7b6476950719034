import type { RecordedEvent } from '../../contract/event.ts';
import type { Place } from '../../contract/place.ts';
import { reportedMoveOf } from '../../engine/device-event.ts';
import type { DeviceContext } from './device-context.ts';
import type { MessageScope } from './scope.ts';

/**
 * An event that the service itself found. Its key is unique, as a transaction computed from a version
 * of the device commits once, and sorts as text in the order in which events of one moment happened.
 */
export function recordEvent(
  context: DeviceContext,
  event: RecordedEvent,
  { rows }: MessageScope,
): void {
  const { deviceId, accountId } = context.device;
  const key = `${sortable(context.version)}.${sortable(rows.events.length)}`;
  rows.events.push({ accountId, deviceId, key, event });
}

/** Its digits, behind their number: 9 before 10, and no padding that would have to be stored. */
function sortable(number: number): string {
  const digits = String(number);
  return `${String.fromCharCode(96 + digits.length)}${digits}`;
}

/** A move that no firing caused; nothing, where the device is there already. */
export function recordMove(
  context: DeviceContext,
  to: Place,
  said: { evId?: number | undefined; ts: number },
  scope: MessageScope,
): void {
  const pId = context.current?.profile.pId ?? '';
  const event = reportedMoveOf(pId, context.place, to, said);
  if (event) recordEvent(context, event, scope);
}
