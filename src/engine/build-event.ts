import type { CompiledCause } from './compile-cause.ts';
import type { CauseDetail, CauseSense, SenseEvent } from '../contract/event.ts';
import { engineOf } from './device-event.ts';
import type { Origin } from './device-event.ts';
import { comparedNumber, liesWithin } from './thresholds.ts';
import type { Agreed, CauseEvidence, EventEvidence } from './runtime.ts';
import type { Silence } from './time-evidence.ts';
import { emptyWindow } from './window.ts';

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
    const time = evidence.time?.causes[index];
    if (time?.silence) found.why?.push(silenceOf(cause, time.silence, origin.ts));
    if (!collected?.agreed) continue;
    found.cause.senses.push(senseOf(cause, collected.agreed));
    const detail = detailOf(cause, collected, time?.compared);
    if (time?.run) Object.assign(detail, lasting(time.run.sinceT, origin.ts));
    found.why?.push(detail);
  }
  return found;
}

/** The measurement as it is told of: a position is 1 where it is inside, and else 0. */
export function senseOf(cause: CompiledCause, { val, ts }: Agreed): CauseSense {
  const { sId } = cause;
  if (typeof val === 'number') return { sId, val, ts };
  return { sId, val: liesWithin(cause, val) ? 1 : 0, ts, lat: val.lat, long: val.long };
}

/** The number that was compared when a cause agreed; undefined for a position. */
export function comparedOf(
  cause: CompiledCause,
  { agreed, baseline }: CauseEvidence,
): number | undefined {
  if (typeof agreed?.val !== 'number') return undefined;
  return comparedNumber(cause, agreed.val, baseline);
}

const lasting = (sinceTs: number, ts: number) => ({ heldMs: ts - sinceTs, sinceTs });

/** Of a silence: no measurement agreed. */
function silenceOf(cause: CompiledCause, { sinceTs }: Silence, ts: number): CauseDetail {
  const detail = detailOf(cause, emptyWindow(undefined), undefined);
  return { ...detail, silentMs: ts - sinceTs, sinceTs };
}

/** `known`: the number that was compared, where it does not follow from what was collected. */
function detailOf(
  cause: CompiledCause,
  collected: CauseEvidence,
  known: number | undefined,
): CauseDetail {
  const { sId, orderId, toldThresholds, negate, needed } = cause;
  const { matched, of } = collected;
  const compared = known ?? comparedOf(cause, collected);
  const detail: CauseDetail = {
    sId,
    orderId,
    thresholds: toldThresholds,
    negate,
    matched,
    of,
    needed,
  };
  if (compared !== undefined) detail.compared = compared;
  if (cause.time?.over) detail.over = cause.time.over;
  if (cause.relative) detail.relative = true;
  return detail;
}
