import type { CompiledCause } from './compile-cause.ts';
import type { CauseDetail, CauseSense, SenseEvent } from '../contract/event.ts';
import { engineOf } from './device-event.ts';
import type { Origin } from './device-event.ts';
import { comparedNumber, liesWithin } from './thresholds.ts';
import type { Agreed, CauseEvidence, EventEvidence } from './runtime.ts';
import type { Run, Silence } from './time-evidence.ts';
import { emptyWindow } from './window.ts';

/**
 * The `sense` event of a firing, with what completed each cause; specification section 6. `nowTs`: when it fired by the
 * service's clock (ms). The firing's `ts` is the time of a measurement, which may be older than the arrival by which
 * silences are counted.
 */
export function senseEventOf(origin: Origin, evidence: EventEvidence, nowTs: number): SenseEvent {
  const found: SenseEvent = {
    type: 'sense',
    ts: origin.ts,
    cause: { engine: engineOf(origin), senses: [] },
    why: [],
  };
  for (const [index, cause] of origin.event.causes.entries()) {
    const collected = evidence.causes[index];
    const time = evidence.time?.causes[index];
    if (time?.silence) found.why?.push(silenceOf(cause, time.silence, nowTs));
    if (!collected?.agreed) continue;
    found.cause.senses.push(senseOf(cause, collected.agreed));
    const detail = detailOf(cause, collected, time?.compared);
    if (time?.run) Object.assign(detail, lastingOf(time.run, origin.ts));
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

/** Of a run. Another cause's measurement may have fired the event as of a time before the run was complete. */
function lastingOf({ sinceT, due }: Run, ts: number): Pick<CauseDetail, 'heldMs' | 'sinceTs'> {
  return { heldMs: Math.max(ts, due?.t ?? ts) - sinceT, sinceTs: sinceT };
}

/** Of a silence: no measurement agreed. A tick that was due after this silence may tell an earlier time. */
function silenceOf(
  cause: CompiledCause,
  { sinceTs, completeTs }: Silence,
  nowTs: number,
): CauseDetail {
  const detail = detailOf(cause, emptyWindow(undefined), undefined);
  return { ...detail, silentMs: Math.max(nowTs, completeTs ?? nowTs) - sinceTs, sinceTs };
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
