import type { AlarmSignal, FiredSignal } from '../../contract/alarm-signal.ts';
import type { EventName } from '../../contract/event.ts';
import type { Place } from '../../contract/place.ts';
import { findEvent, type Profile } from '../../engine/compile.ts';
import type { DeviceContext } from './device-context.ts';
import type { MessageScope } from './scope.ts';

type Without<S, Members extends string> = S extends unknown ? Omit<S, Members> : never;
type Told = Without<AlarmSignal, 'device' | 'arrivedTs'> & { arrivedTs?: number };

/** What all firings of an event have in common. */
type Described = Pick<
  FiredSignal,
  'of' | 'pId' | 'name' | 'stateName' | 'purposeName' | 'actions' | 'tells' | 'isGlobal' | 'sIds'
>;

/** Alarms are told of it, in the transaction that stores the device; without an `arrivedTs` as of the message's. */
export function signal({ device }: DeviceContext, told: Told, scope: MessageScope): void {
  scope.rows.signals.push({ device, ...told, arrivedTs: told.arrivedTs ?? scope.arrivedTs });
}

/** Alarms are told of it where the device goes to another state, and has a profile that makes alarms. */
export function signalMove(
  context: DeviceContext,
  move: { to: Place; isReport: boolean; arrivedTs?: number },
  scope: MessageScope,
): void {
  const { place: from } = context;
  const { to } = move;
  if ((from.puId === to.puId && from.stId === to.stId) || !makesAlarms(context)) return;
  signal(context, { kind: 'moved', from, ...move }, scope);
}

/** Whether the current profile of the device has an event that opens alarms. */
export function makesAlarms({ current }: DeviceContext): boolean {
  if (!current) return false;
  // The profiles of one content share these, whichever device they are of.
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

/** The event, as alarms know it; null where the profile has no such event, or it concerns nobody. */
export function describe(profile: Profile, of: EventName): Described | null {
  const event = findEvent(profile, of, of.evId);
  const tells = event?.tells ?? 'nobody';
  if (!event || tells === 'nobody') return null;
  const purpose = profile.purposes.get(of.puId);
  return {
    of,
    pId: profile.pId,
    name: event.name,
    stateName: purpose?.states.get(of.stId)?.name ?? '',
    purposeName: purpose?.name ?? '',
    actions: event.actions,
    tells,
    isGlobal: event.isGlobal,
    sIds: [...new Set(event.causes.map(({ sId }) => sId))],
  };
}
