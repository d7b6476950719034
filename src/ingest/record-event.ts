import type { DeviceEvent, RecordedEvent } from '../core/event.ts';
import type { Place } from '../core/runtime.ts';
import type { Scope } from './apply.ts';
import type { DeviceContext } from './context.ts';

/**
 * An event that the service itself found. Its key needs to be unique only: a transaction computed
 * from a version of the device commits once.
 */
export function recordEvent(context: DeviceContext, event: RecordedEvent, { rows }: Scope): void {
  const { deviceId, accountId } = context.device;
  const key = `${context.version}.${rows.events.length}`;
  rows.events.push({ accountId, deviceId, key, event });
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
