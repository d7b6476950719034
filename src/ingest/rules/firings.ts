import { messagesOf } from '../../contract/actions.ts';
import type { AlarmSignal, FiredSignal } from '../../contract/alarm.ts';
import type {
  CauseSense,
  EngineCause,
  EventMeaning,
  EventName,
  RecordedEvent,
  SenseEvent,
} from '../../contract/event.ts';
import type { DeviceIdentity, Downlink } from '../../contract/uplink.ts';
import { lastOf, type Place } from '../../contract/values.ts';
import {
  alternativesOf,
  findEvent,
  type Firing,
  type LiveEvent,
  type Profile,
} from '../../engine/compile.ts';
import { reportedMoveOf } from '../../engine/fire.ts';
import type { Listening } from '../../engine/last-seen.ts';
import { type ApplyLimits, costs, type DeviceState, type MessageScope } from './model.ts';
import type { WallMs } from '../../lib/clock-readings.ts';

type Without<S, Members extends string> = S extends unknown ? Omit<S, Members> : never;
type GivenSignal = Without<AlarmSignal, 'device' | 'arrivedTs'> & { arrivedTs?: WallMs };

/** What all firings of an event have in common. */
type Described = Pick<
  FiredSignal,
  | 'of'
  | 'pId'
  | 'name'
  | 'stateName'
  | 'purposeName'
  | 'actions'
  | 'tells'
  | 'isGlobal'
  | 'sIds'
  | 'conditions'
>;

/** Signals alarms, in the transaction that stores the device. Without `arrivedTs` the message's is used. */
export function signal(
  { device }: DeviceState,
  given: GivenSignal,
  { rows, arrivedTs }: MessageScope,
): void {
  rows.signals.push({ device, arrivedTs, ...given });
}

/** Signals alarms that the device goes to another state, if its profile has alarms. */
export function signalMove(
  deviceState: DeviceState,
  move: { to: Place; ts: number; isReport: boolean; arrivedTs?: WallMs },
  scope: MessageScope,
): void {
  const { place: from } = deviceState;
  const { to } = move;
  if ((from.puId === to.puId && from.stId === to.stId) || !makesAlarms(deviceState)) return;
  signal(deviceState, { kind: 'moved', from, ...move }, scope);
}

/** Whether the device's current profile has an event that opens alarms. */
export function makesAlarms({ current }: DeviceState): boolean {
  if (!current) return false;
  // Profiles with the same content share this object, whichever device they belong to.
  const { purposes } = current.profile;
  const known = alarming.get(purposes);
  if (known !== undefined) return known;
  const events = [...purposes.values()].flatMap(({ states }) =>
    [...states.values()].flatMap((state) => state.events),
  );
  const makes = events.some(({ hasEpisodes }) => hasEpisodes);
  alarming.set(purposes, makes);
  return makes;
}

const alarming = new WeakMap<Profile['purposes'], boolean>();

/**
 * The event as alarms know it, with `anyOf` by the group that `fired` it; null if the profile has no such event, or it
 * concerns nobody.
 */
export function describe(
  profile: Profile,
  of: EventName,
  senses: DeviceState['senses'],
  fired?: Pick<SenseEvent, 'why'>,
): Described | null {
  const event = findEvent(profile, of, of.evId);
  const tells = event?.tells ?? 'nobody';
  if (!event || tells === 'nobody') return null;
  const purpose = profile.purposes.get(of.puId);
  const group = fired?.why?.[0]?.group;
  const causes = group === undefined ? event.causes : (alternativesOf(event)[group] ?? []);
  return {
    of,
    pId: profile.pId,
    name: event.name,
    stateName: purpose?.states.get(of.stId)?.name ?? '',
    purposeName: purpose?.name ?? '',
    actions: event.actions,
    tells,
    isGlobal: event.isGlobal,
    sIds: [...new Set(causes.map(({ sId }) => sId))],
    conditions: causes.map(
      ({ sId, reportedThreshold: threshold, reportedThresholds: thresholds }) => {
        const { name = null, unit = null } = senses.get(sId) ?? {};
        return { sId, name, unit, threshold, thresholds };
      },
    ),
  };
}

/** Performs the actions of an event that fired, as rows and effects. */
export function performFiring(
  deviceState: DeviceState,
  firing: Firing,
  movedTo: Place | null,
  scope: MessageScope,
): DeviceState {
  const { event, actions, name, record, tells } = firing;
  const { device } = deviceState;
  scope.budget.spent += costs.firing + costs.firingCause * event.cause.senses.length;
  addSilentSenses(deviceState, event);
  if (record) recordEvent(deviceState, event, scope);
  for (const message of messagesOf(actions, { device, event, name })) {
    scope.rows.effects.push({ kind: 'down', uuid: device.uuid, message });
    if (message.topic === 'display') keepDisplay(firing, device.deviceId, message, scope);
  }
  if (tells === 'nobody') return deviceState;
  scope.budget.spent += costs.alarm;
  return signalFiring(deviceState, firing, movedTo, scope);
}

const dayMs = 86_400_000;

/** Keeps the text for a device that is away or loses it. Texts from a backlog of another day are not kept. */
function keepDisplay(
  { event, actions }: Firing,
  deviceId: number,
  message: Downlink,
  { rows, arrivedTs, budget }: MessageScope,
): void {
  const { puId, stId } = event.cause.engine;
  const text = actions.display?.showText;
  if (text === undefined || event.ts < arrivedTs - dayMs) return;
  const key = `${deviceId} ${puId} ${stId}`;
  // Moves it behind the texts of other states, which are older now.
  if (!rows.displays.delete(key)) budget.spent += costs.display;
  rows.displays.set(key, { deviceId, puId, stId, text, ts: event.ts, message });
}

function signalFiring(
  deviceState: DeviceState,
  { event, record, isFirst, ageMs, began }: Firing,
  movedTo: Place | null,
  scope: MessageScope,
): DeviceState {
  const { current, place } = deviceState;
  const { puId, stId, evId } = event.cause.engine;
  const described =
    current && describe(current.profile, { puId, stId, evId }, deviceState.senses, event);
  if (!described) return deviceState;
  const isFresh = ageMs <= scope.limits.ringMaxAgeMs;
  const arrivedTs = event.arrivedTs ?? scope.arrivedTs;
  const of = { isFirst, isFresh, began, isRecorded: record, from: place, movedTo, arrivedTs };
  signal(deviceState, { kind: 'fired', ...described, event, ...of }, scope);
  return isFresh ? deviceState : waitFor(deviceState, described);
}

/** An alarm that is too old to be notified waits for the next fresh measurement of one of its senses. */
export function waitFor(
  deviceState: DeviceState,
  { sIds, tells }: Pick<FiredSignal, 'sIds' | 'tells'>,
): DeviceState {
  const { waitingSenses: before } = deviceState;
  if (tells !== 'alarm' || sIds.every((sId) => before?.has(sId))) return deviceState;
  return { ...deviceState, waitingSenses: new Set([...(before ?? []), ...sIds]) };
}

type Known = Pick<DeviceState, 'watched' | 'seen' | 'clocks'>;

/** Adds, to the causes that a fired event reports, the newest stored value of each silent sense. */
export function addSilentSenses(deviceState: Known, { cause, why = [] }: SenseEvent): void {
  if (!why.some(({ silentMs }) => silentMs !== undefined)) return;
  // The senses of the other causes are in the order of `why`.
  const others = cause.senses.values();
  cause.senses = why.flatMap(({ sId, silentMs }) => {
    const sense = silentMs === undefined ? others.next().value : findNewest(deviceState, sId);
    return sense ? [sense] : [];
  });
}

function findNewest({ watched, seen, clocks }: Known, sId: string): CauseSense | null {
  const clock = clocks?.get(sId);
  const number = watched.get(sId);
  const last = number === undefined ? undefined : seen.get(number);
  const ts = clock?.newestTs ?? last?.ts;
  const val = clock ? clock.newestVal : lastOf(last);
  if (ts === undefined || val === undefined) return null;
  return typeof val === 'number' ? { sId, val, ts } : { sId, val: 0, ts, ...val };
}

/**
 * Records an event that the service itself found. Its key is unique, because a transaction computed from a version of
 * the device commits only once. As text, keys sort in the order in which events of one moment happened.
 */
export function recordEvent(
  deviceState: DeviceState,
  event: RecordedEvent,
  { rows }: MessageScope,
): void {
  const { deviceId, accountId } = deviceState.device;
  const key = `${sortable(deviceState.version)}.${sortable(rows.events.length)}`;
  const meaning = meaningOf(deviceState, event.cause.engine);
  const contentId = deviceState.current?.profile.contentId;
  rows.events.push({ accountId, deviceId, key, event, meaning, contentId });
}

const meanings = new WeakMap<LiveEvent, EventMeaning>();

/** What the event is called in the device's current profile; undefined if it is not from there. */
export function meaningOf(
  { current }: Pick<DeviceState, 'current'>,
  { pId, puId, stId, evId }: EngineCause,
): EventMeaning | undefined {
  if (!current || current.profile.pId !== pId) return undefined;
  const { purposes } = current.profile;
  const event = findEvent(current.profile, { puId, stId }, evId);
  const known = event && meanings.get(event);
  if (known) return known;
  const purpose = purposes.get(puId);
  const state = purpose?.states.get(stId);
  // A move that no event caused has 0 as `evId`.
  if (!purpose || !state || (!event && evId !== 0)) return undefined;
  const names = { purposeName: purpose.name, stateName: state.name };
  if (!event) return { ...names, eventName: '', conditions: [] };
  const meaning: EventMeaning = {
    ...names,
    eventName: event.name,
    conditions: event.causes.map(({ sId, group, reportedThreshold, reportedThresholds }) => {
      const of = event.groups ? { sId, group } : { sId };
      return { ...of, threshold: reportedThreshold, thresholds: reportedThresholds };
    }),
    ...(event.target && { to: namesOf(purposes, event.target.place) }),
  };
  meanings.set(event, meaning);
  return meaning;
}

function namesOf(purposes: Profile['purposes'], { puId, stId }: Place) {
  const purpose = purposes.get(puId);
  return {
    purposeName: purpose?.name ?? '',
    stateName: purpose?.states.get(stId)?.name ?? '',
  };
}

/** Digits, preceded by a letter for their count: 9 sorts before 10, without padding that would have to be stored. */
function sortable(number: number): string {
  const digits = String(number);
  return `${String.fromCharCode(96 + digits.length)}${digits}`;
}

/** Records a change of state that no firing caused; nothing if the device is already there. */
export function recordMove(
  deviceState: DeviceState,
  to: Place,
  said: { evId?: number | undefined; ts: number },
  scope: MessageScope,
): void {
  const pId = deviceState.current?.profile.pId ?? '';
  const event = reportedMoveOf(pId, deviceState.place, to, said);
  if (event) recordEvent(deviceState, event, scope);
}

/** When the device's connector did not listen. A gap that still lasts ends now: nothing is due before that. */
export function listeningUntil(
  nowTs: WallMs,
  device: DeviceIdentity,
  { listeningOf }: ApplyLimits,
): Listening | undefined {
  const listening = listeningOf?.(device);
  const last = listening?.gaps.at(-1);
  if (!listening || last?.toTs !== null) return listening;
  return { gaps: [...listening.gaps.slice(0, -1), { fromTs: last.fromTs, toTs: nowTs }] };
}
