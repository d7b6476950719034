import type {
  CauseDetail,
  CauseSense,
  DeviceEvent,
  EngineCause,
  SenseEvent,
} from '../contract/event.ts';
import type { Place } from '../contract/values.ts';
import type {
  CauseReader,
  CompiledCause,
  Evaluated,
  LiveEvent,
  MoveTarget,
  Profile,
} from './compile.ts';
import { collect, type EvaluationState, useUp } from './evidence.ts';
import {
  type Agreed,
  type CauseEvidence,
  type EventEvidence,
  hasPlace,
  type Run,
  type Silence,
} from './runtime.ts';
import { comparedNumber, liesWithin } from './thresholds.ts';
import { collectTimed } from './timed.ts';
import { emptyWindow, type GivenValue } from './window.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** What a cause of an event that fires takes, beside one that judges and stays as it is. */
export const costOfFiring = 5;

/**
 * `ts`: the firing's. `nowTs`: when it fires by the service's clock: as the measurement arrives, or as the tick is due; by
 * a silence's tick when that was complete. `ageMs`: see `Firing`. `isGiven`: whether the firing is among the outcome's.
 */
type At = { ts: number; nowTs: WallMs; ageMs: number; isGiven: boolean };

/** An event fires: what it has collected is used up. */
export function fire(
  { pId }: Profile,
  live: EvaluationState,
  event: LiveEvent,
  evidence: EventEvidence,
  { ts, nowTs, ageMs, isGiven }: At,
  outcome: Evaluated,
): void {
  if (isGiven) {
    const found = senseEventOf({ pId, puId: live.place.puId, event, ts }, evidence, nowTs);
    const { name, record, actions, tells } = event;
    const isFirst = !evidence.isInEpisode;
    outcome.firings.push({ event: found, name, record, actions, tells, isFirst, ageMs });
  }
  live.draftOf(event).set(event.index, useUp(event, evidence));
}

/** Where an event that fired moves the device, if anywhere: to be entered. */
export function leadOn(
  profile: Profile,
  { place }: EvaluationState,
  event: LiveEvent,
  ts: number,
  outcome: Evaluated,
): MoveTarget | null {
  const { target } = event;
  if (!target || !hasPlace(profile, target.place)) return null;
  const { place: to } = target;
  const engine = engineOf({ pId: profile.pId, puId: place.puId, event, ts });
  const moved = deviceEventOf(engine, place, to);
  outcome.transition = moved ? { to, event: moved } : { to };
  return target;
}

/**
 * The `sense` event of a firing, with what completed each cause; specification section 6. `nowTs`: when it fired by the
 * service's clock (ms). The firing's `ts` is the time of a measurement, which may be older than the arrival by which
 * silences are counted.
 */
function senseEventOf(origin: Origin, evidence: EventEvidence, nowTs: WallMs): SenseEvent {
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
  nowTs: WallMs,
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

/** Which event of which profile; `puId` is the purpose that the device is in when it fires. */
type Origin = { pId: string; puId: number; event: LiveEvent; ts: number };

/** The names of an event that fires; `stId` is that of the state that holds it. */
function engineOf({ pId, puId, event, ts }: Origin): EngineCause {
  return { pId, puId, stId: event.stId, evId: event.evId, ts };
}

/** The `device` event of a move, or null where the device enters the state it is in. */
function deviceEventOf(engine: EngineCause, from: Place, to: Place): DeviceEvent | null {
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

/** CausesBySense in the order in which they are tried: the state's own, then global ones; the one of `at` moves the device. */
type Mover = { own: CauseReader[]; global: CauseReader[]; at: number };

/**
 * A measurement moves the device. The readers behind the one that moves it whose state stays are shown it, but only as
 * a disagreement: what agrees is not taken, and nothing fires. Gives what that takes (`CompiledCause`).
 */
export function leave(
  live: EvaluationState,
  { own, global, at }: Mover,
  given: GivenValue,
  outcome: Evaluated,
): number {
  const { puId, stId } = live.place;
  const target = (own[at] ?? global[at - own.length])?.event.target;
  if (!target) return 0;
  const { place, entersPurpose } = target;
  let cost = 0;
  if (place.puId === puId) {
    if (!entersPurpose) live.endGlobalDeferred();
    const isKept = { local: place.stId === stId, windows: !entersPurpose };
    for (let index = at + 1; index < own.length; index++)
      cost += show(own[index] as CauseReader, live, isKept, given);
    for (let index = Math.max(0, at + 1 - own.length); index < global.length; index++) {
      const reader = global[index] as CauseReader;
      if (reader.event.stId !== stId) cost += show(reader, live, isKept, given);
    }
  }
  if (live.ended.length > 0) live.tellEnded(outcome);
  live.enter(place, entersPurpose, outcome.arrivedTs);
  return cost;
}

/** `isKept`: whether the state's own events stay, and the windows of global ones. */
function show(
  reader: CauseReader,
  live: EvaluationState,
  isKept: { local: boolean; windows: boolean },
  given: GivenValue,
): number {
  const { event } = reader;
  if (!event.isGlobal && !isKept.local) return 0;
  const draft = live.draftOf(event);
  // Windows that are emptied next matter to an episode only.
  const isEmptied = !event.isGlobal || !isKept.windows;
  if (isEmptied && !event.isTimed && !draft.get(event.index)?.isInEpisode) return 0;
  if (event.isTimed) collectTimed(reader, draft, given, true);
  else collect(reader, draft, given.val, given.once, true);
  return reader.cost;
}
