import type { AlarmSignal, FiredSignal } from '../../contract/alarm-signal.ts';
import type { EventName } from '../../contract/event.ts';
import { findEvent, type Profile } from '../../engine/compile.ts';
import type { DeviceContext } from './device-context.ts';
import type { Scope } from './scope.ts';

type Without<S, Members extends string> = S extends unknown ? Omit<S, Members> : never;
type Told = Without<AlarmSignal, 'device' | 'arrivedTs'>;

/** What all firings of an event have in common. */
type Described = Pick<
  FiredSignal,
  'of' | 'pId' | 'name' | 'stateName' | 'purposeName' | 'actions' | 'tells' | 'sIds'
>;

/** Alarms are told of it, in the transaction that stores the device. */
export function signal({ device }: DeviceContext, told: Told, scope: Scope): void {
  scope.rows.signals.push({ device, arrivedTs: scope.arrivedTs, ...told });
}

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
    sIds: [...new Set(event.causes.map(({ sId }) => sId))],
  };
}
