import type { FleetFilter } from '../../api/devices.ts';
import type { DeviceAction } from '../../api/types.ts';
import { queryOf } from '../../app/router.ts';

/** Those of the filters that are in the URL. */
export const filterNames = [
  'search',
  'presence',
  'online',
  'profile',
  'alarm',
  'refused',
  'muted',
  'label',
] as const;

export const filterOf = (): FleetFilter => ({
  search: queryOf('search'),
  presence: queryOf('presence'),
  online: queryOf('online'),
  profile: queryOf('profile'),
  alarm: queryOf('alarm'),
  refused: queryOf('refused'),
  muted: queryOf('muted'),
  label: queryOf('label'),
  sort: queryOf('sort') || 'name',
  cursor: queryOf('cursor'),
});

/** The same for an action: without how it is sorted, and which page. */
export function toDeviceFilter(filter: FleetFilter): NonNullable<DeviceAction['filter']> {
  const given = filterNames
    .filter((name) => filter[name] !== '')
    .map((name) => [name, isFlag(name) ? filter[name] === 'true' : filter[name]] as const);
  return Object.fromEntries(given);
}

const isFlag = (name: string) => ['online', 'refused', 'muted'].includes(name);

/** Which devices a filter is for, as text: two that let through the same ones are the same text. */
export const nameOf = (filter: FleetFilter): string => JSON.stringify(toDeviceFilter(filter));
