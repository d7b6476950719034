import type { DeviceEvent, EngineCause } from '../contract/event.ts';
import type { Place } from '../contract/place.ts';
import type { LiveEvent } from './compile-event.ts';

/** Which event of which profile; `puId` is the purpose that the device is in when it fires. */
export type Origin = { pId: string; puId: number; event: LiveEvent; ts: number };

/** The names of an event that fires; `stId` is that of the state that holds it. */
export function engineOf({ pId, puId, event, ts }: Origin): EngineCause {
  return { pId, puId, stId: event.stId, evId: event.evId, ts };
}

/** The `device` event of a move, or null where the device enters the state it is in. */
export function deviceEventOf(engine: EngineCause, from: Place, to: Place): DeviceEvent | null {
  const purposeChanged = from.puId !== to.puId;
  if (!purposeChanged && from.stId === to.stId) return null;
  return {
    type: 'device',
    ts: engine.ts,
    event: purposeChanged ? 'purposeChanged' : 'stateChanged',
    cause: { engine },
    newValue: purposeChanged ? to.puId : to.stId,
    oldValue: purposeChanged ? from.puId : from.stId,
  };
}

/**
 * The same of a move that no firing of the service's caused: by a report of the device, or by a new profile. It names the
 * place that was entered, and the event that the device said moved it: 0 where it said none.
 */
export function reportedMoveOf(
  pId: string,
  from: Place,
  to: Place,
  { evId = 0, ts }: { evId?: number | undefined; ts: number },
): DeviceEvent | null {
  return deviceEventOf({ pId, puId: to.puId, stId: to.stId, evId, ts }, from, to);
}
