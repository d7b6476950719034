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
  CompiledPurpose,
  CompiledState,
  Evaluated,
  LiveEvent,
  MoveTarget,
  Profile,
} from './compile.ts';
import { beganOf } from './begin.ts';
import {
  collect,
  type Deferred,
  emptyWindow,
  EvidenceDraft,
  firingCauses,
  type GivenValue,
} from './evidence.ts';
import {
  type Agreed,
  type CauseEvidence,
  enteredPurpose,
  enteredState,
  type EventEvidence,
  type Evidence,
  hasPlace,
  noEvidence,
  type Run,
  type Runtime,
  type Silence,
} from './runtime.ts';
import { comparedNumber, liesWithin } from './thresholds.ts';
import { collectTimed, leftAtReentry, usedUp, withTime } from './timed.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** Where a device is and what the live events have collected, during evaluation. */
export class EvaluationState {
  readonly #profile: Profile;
  readonly #base: Runtime;
  place: Place;
  purpose: CompiledPurpose | undefined;
  state: CompiledState | undefined;
  local: EvidenceDraft;
  global: EvidenceDraft;
  /** Events whose episodes have ended and are not reported yet. */
  readonly ended: LiveEvent[] = [];
  readonly localDeferred: Deferred = new Map();
  readonly globalDeferred: Deferred = new Map();

  constructor(profile: Profile, runtime: Runtime) {
    this.#profile = profile;
    this.#base = runtime;
    this.place = runtime;
    this.purpose = profile.purposes.get(runtime.puId);
    this.state = this.purpose?.states.get(runtime.stId);
    this.local = new EvidenceDraft(runtime.local, this.ended);
    this.global = new EvidenceDraft(runtime.global, this.ended);
  }

  draftOf({ isGlobal }: LiveEvent): EvidenceDraft {
    return isGlobal ? this.global : this.local;
  }

  /** Collects global states' deferred numbers. Which of their events take a number depends on the current state. */
  endGlobalDeferred(): void {
    for (const deferred of this.globalDeferred.values()) deferred.end(this.global);
    this.globalDeferred.clear();
  }

  /**
   * Moves the device after a firing. `namesPurpose`: the action has a `gotoPuId`. That empties what global states
   * have collected, even if it names the current purpose.
   */
  enter(place: Place, namesPurpose: boolean, arrivedTs: WallMs): void {
    const from = this.place;
    const isSamePurpose = place.puId === from.puId;
    const staysInState = isSamePurpose && place.stId === from.stId;
    this.place = place;
    this.purpose = this.#profile.purposes.get(place.puId);
    this.state = this.purpose?.states.get(place.stId);
    this.local = new EvidenceDraft(
      staysInState
        ? anew(this.state?.staying ?? [], this.local)
        : enteredState(this.state, arrivedTs),
      this.ended,
    );
    this.localDeferred.clear();
    if (!namesPurpose) this.endGlobalDeferred();
    this.globalDeferred.clear();
    if (!namesPurpose) return;
    this.global = new EvidenceDraft(
      isSamePurpose
        ? anew(this.purpose?.globalStaying ?? [], this.global)
        : enteredPurpose(this.purpose, arrivedTs),
      this.ended,
    );
  }

  /** Reports which episodes have ended. */
  tellEnded(outcome: Evaluated): void {
    const { puId } = this.place;
    outcome.ended = this.ended.splice(0).map(({ stId, evId }) => ({ puId, stId, evId }));
  }

  /** Returns the runtime; the very object that was given if nothing changed. */
  end(): Runtime {
    for (const deferred of this.localDeferred.values()) deferred.end(this.local);
    for (const deferred of this.globalDeferred.values()) deferred.end(this.global);
    const [local, global] = [this.local.end(), this.global.end()];
    const base = this.#base;
    if (this.place === base && local === base.local && global === base.global) return base;
    const { puId, stId } = this.place;
    return { puId, stId, local, global };
  }
}

/** What these events keep when their state or purpose is entered again. */
function anew(staying: LiveEvent[], draft: EvidenceDraft): Evidence {
  let evidence: (EventEvidence | null)[] | null = null;
  for (const event of staying) {
    const before = draft.get(event.index);
    const left = before && leftAtReentry(event, before);
    if (!left) continue;
    evidence ??= [];
    while (evidence.length < event.index) evidence.push(null);
    evidence[event.index] = left;
  }
  return evidence ?? noEvidence;
}

/** The cost of a cause whose event fires, beside judging it. */
export const costOfFiring = 5;

/**
 * `ts`: the firing's time. `nowTs`: when it fires by the service's clock, that is, when the measurement arrives, when
 * the tick is due, or when a silence was complete. `ageMs`: see `Firing`. `isGiven`: whether the outcome reports it.
 * `among`: the groups that may have fired it, as bits.
 */
type At = { ts: number; nowTs: WallMs; ageMs: number; isGiven: boolean; among: number };

/** Fires an event: its evidence is used up. */
export function fire(
  { pId }: Profile,
  live: EvaluationState,
  event: LiveEvent,
  evidence: EventEvidence,
  { ts, nowTs, ageMs, isGiven, among }: At,
  outcome: Evaluated,
): void {
  if (isGiven) {
    const firing = firingCauses(event, evidence, among);
    const found = senseEventOf({ pId, puId: live.place.puId, event, ts }, evidence, {
      nowTs,
      firing,
    });
    const { name, record, actions, tells } = event;
    const isFirst = evidence.episode === 0;
    const began = event.hasEpisodes
      ? beganOf(event, evidence, { at: { ts, arrivedTs: nowTs }, firing })
      : null;
    outcome.firings.push({ event: found, name, record, actions, tells, isFirst, ageMs, began });
  }
  live.draftOf(event).set(event.index, useUp(event, evidence));
}

/** Returns where an event that fired moves the device; null if nowhere. The caller enters that place. */
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
 * The `sense` event of a firing, with what completed each cause that fired it; specification section 6. `nowTs`: when
 * it fired by the service's clock (ms). The firing's `ts` comes from a measurement and may be earlier than the arrival
 * from which silences count.
 */
function senseEventOf(
  origin: Origin,
  evidence: EventEvidence,
  { nowTs, firing }: { nowTs: WallMs; firing: readonly number[] },
): SenseEvent {
  const found: SenseEvent = {
    type: 'sense',
    ts: origin.ts,
    cause: { engine: engineOf(origin), senses: [] },
    why: [],
  };
  for (const index of firing) {
    const cause = origin.event.causes[index] as CompiledCause;
    const collected = evidence.causes[index];
    const time = evidence.time?.causes[index];
    const detailed = (detail: CauseDetail) =>
      found.why?.push(origin.event.groups ? { ...detail, group: cause.group } : detail);
    if (time?.silence) detailed(silenceOf(cause, time.silence, nowTs));
    if (!collected?.agreed) continue;
    found.cause.senses.push(senseOf(cause, collected.agreed));
    const detail = detailOf(cause, collected, time?.compared);
    if (time?.run) Object.assign(detail, lastingOf(time.run, origin.ts));
    detailed(detail);
  }
  return found;
}

/** A measurement as events report it. For a position, `val` is 1 if it is inside, otherwise 0. */
export function senseOf(cause: CompiledCause, { val, ts }: Agreed): CauseSense {
  const { sId } = cause;
  if (typeof val === 'number') return { sId, val, ts };
  return { sId, val: liesWithin(cause, val) ? 1 : 0, ts, lat: val.lat, long: val.long };
}

/** The number that was compared when the cause agreed; undefined for a position. */
export function comparedOf(
  cause: CompiledCause,
  { agreed, baseline }: CauseEvidence,
): number | undefined {
  if (typeof agreed?.val !== 'number') return undefined;
  return comparedNumber(cause, agreed.val, baseline);
}

/** Details of a run. A measurement of another cause may have fired the event at a time before the run was complete. */
function lastingOf({ sinceT, due }: Run, ts: number): Pick<CauseDetail, 'heldMs' | 'sinceTs'> {
  return { heldMs: Math.max(ts, due?.t ?? ts) - sinceT, sinceTs: sinceT };
}

/** Details of a silence. No measurement agreed. A later tick of another cause may report an earlier time. */
function silenceOf(
  cause: CompiledCause,
  { sinceTs, completeTs }: Silence,
  nowTs: WallMs,
): CauseDetail {
  const detail = detailOf(cause, emptyWindow(undefined), undefined);
  return { ...detail, silentMs: Math.max(nowTs, completeTs ?? nowTs) - sinceTs, sinceTs };
}

/** `known`: the number that was compared, if it does not follow from what was collected. */
function detailOf(
  cause: CompiledCause,
  collected: CauseEvidence,
  known: number | undefined,
): CauseDetail {
  const { sId, orderId, reportedThresholds, negate, needed } = cause;
  const { matched, of } = collected;
  const compared = known ?? comparedOf(cause, collected);
  const detail: CauseDetail = {
    sId,
    orderId,
    thresholds: reportedThresholds,
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

/** Which event of which profile. `puId`: the device's purpose when it fires. */
type Origin = { pId: string; puId: number; event: LiveEvent; ts: number };

/** The identifiers of an event that fires. `stId`: the state that contains it. */
function engineOf({ pId, puId, event, ts }: Origin): EngineCause {
  return { pId, puId, stId: event.stId, evId: event.evId, ts };
}

/** The `device` event of a move; null if the device enters the state it is in. */
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
 * The `device` event of a move without a firing in the service: a device reported it, or a new profile caused it. It
 * names the place that was entered and the event that the device gave as the reason; 0 if it gave none.
 */
export function reportedMoveOf(
  pId: string,
  from: Place,
  to: Place,
  { evId = 0, ts }: { evId?: number | undefined; ts: number },
): DeviceEvent | null {
  return deviceEventOf({ pId, puId: to.puId, stId: to.stId, evId, ts }, from, to);
}

/** Readers in the order they are tried: the state's own, then global ones. The one at `at` moves the device. */
type Mover = { own: CauseReader[]; global: CauseReader[]; at: number };

/**
 * Moves the device by a measurement. Readers after the one that moves it, if their evidence stays, take the
 * measurement only as a disagreement: what agrees is not collected, and nothing fires. Returns the cost
 * (`CompiledCause`).
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
  // A window that is about to be emptied matters only to an episode.
  const isEmptied = !event.isGlobal || !isKept.windows;
  if (isEmptied && !event.isTimed && !draft.get(event.index)?.episode) return 0;
  if (event.isTimed) collectTimed(reader, draft, given, true);
  else collect(reader, draft, given, true);
  return reader.cost;
}

/** What remains after a firing: empty windows, baselines, what time members keep, and that an episode has begun. */
function useUp(event: LiveEvent, evidence: EventEvidence): EventEvidence | null {
  const { hasEpisodes, isTimed, groups } = event;
  const episode = hasEpisodes ? evidence.episode | (groups ? evidence.holding : 1) : 0;
  const { lately } = evidence;
  let isEmpty = !hasEpisodes && !isTimed;
  const causes = evidence.causes.map((collected) => {
    if (collected?.baseline === undefined) return null;
    isEmpty = false;
    return emptyWindow(collected.baseline);
  });
  if (isEmpty) return null;
  const used: EventEvidence = { causes, holding: 0, episode, lately, time: null };
  return evidence.time ? withTime(event, used, usedUp(evidence.time)) : used;
}
