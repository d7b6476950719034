import type { DeviceEvent, RecordedEvent } from '../../contract/event.ts';
import type { Place } from '../../contract/place.ts';
import type { DeviceContext } from './device-context.ts';
import type { Scope } from './scope.ts';

/**
 * An event that the service itself found. Its key is unique, as a transaction computed from a version
 * of the device commits once, and sorts as text in the order in which events of one moment happened.
 */
export function recordEvent(context: DeviceContext, event: RecordedEvent, { rows }: Scope): void {
  const { deviceId, accountId } = context.device;
  const key = `${sortable(context.version)}.${sortable(rows.events.length)}`;
  rows.events.push({ accountId, deviceId, key, event });
}

/** Its digits, behind their number: 9 before 10, and no padding that would have to be stored. */
function sortable(number: number): string {
  const digits = String(number);
  return `${String.fromCharCode(96 + digits.length)}${digits}`;
}

/** `purposeChanged` where the purpose is another one, `stateChanged` where only the state is, else nothing. */
export function recordMove(
  context: DeviceContext,
  to: Place,
  cause: { evId: number; ts: number },
  scope: Scope,
): void {
  const from = context.place;
  const purposeChanged = from.puId !== to.puId;
  if (!purposeChanged && from.stId === to.stId) return;
  const pId = context.current?.profile.pId ?? '';
  const event: DeviceEvent = {
    type: 'device',
    ts: cause.ts,
    event: purposeChanged ? 'purposeChanged' : 'stateChanged',
    cause: { engine: { pId, ...to, ...cause } },
    newValue: purposeChanged ? to.puId : to.stId,
    oldValue: purposeChanged ? from.puId : from.stId,
  };
  recordEvent(context, event, scope);
}
