import { countAgreed } from './collect.ts';
import type { CompiledCause, LiveEvent } from './compile-event.ts';
import type { CauseDetail, CauseSense, DeviceEvent, EngineCause, SenseEvent } from './event.ts';
import type { Place } from './place.ts';
import type { CauseEvidence, EventEvidence } from './runtime.ts';

/** Which event of which profile; `stId` is that of the state that holds the event. */
type Origin = { pId: string; puId: number; event: LiveEvent; ts: number };

/** The `sense` event of a firing, with what completed each cause; specification section 6. */
export function senseEventOf(origin: Origin, evidence: EventEvidence): SenseEvent {
  const found: SenseEvent = {
    type: 'sense',
    ts: origin.ts,
    cause: { engine: engineOf(origin), senses: [] },
    why: [],
  };
  for (const [index, cause] of origin.event.causes.entries()) {
    const collected = evidence.causes[index];
    if (!collected?.agreed) continue;
    found.cause.senses.push(senseOf(cause, collected.agreed));
    found.why?.push(detailOf(cause, collected));
  }
  return found;
}

/** The `device` event of a move, or null where the device enters the state it is in. */
export function deviceEventOf(origin: Origin, from: Place, to: Place): DeviceEvent | null {
  const purposeChanged = from.puId !== to.puId;
  if (!purposeChanged && from.stId === to.stId) return null;
  return {
    type: 'device',
    ts: origin.ts,
    event: purposeChanged ? 'purposeChanged' : 'stateChanged',
    cause: { engine: engineOf(origin) },
    newValue: purposeChanged ? to.puId : to.stId,
    oldValue: purposeChanged ? from.puId : from.stId,
  };
}

function engineOf({ pId, puId, event, ts }: Origin): EngineCause {
  return { pId, puId, stId: event.stId, evId: event.evId, ts };
}

function senseOf({ sId }: CompiledCause, agreed: NonNullable<CauseEvidence['agreed']>): CauseSense {
  const { val, ts, lat, long } = agreed;
  return lat === undefined || long === undefined ? { sId, val, ts } : { sId, val, ts, lat, long };
}

function detailOf(cause: CompiledCause, { window, agreed }: CauseEvidence): CauseDetail {
  const { sId, orderId, toldThresholds, negate, needed } = cause;
  const detail: CauseDetail = {
    sId,
    orderId,
    thresholds: toldThresholds,
    negate,
    matched: countAgreed(window),
    of: window.length,
    needed,
  };
  if (agreed?.compared !== undefined) detail.compared = agreed.compared;
  return detail;
}
