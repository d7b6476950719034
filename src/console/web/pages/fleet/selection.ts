import { computed, effect, signal } from '@preact/signals';
import type { FleetFilter, ListedDevice } from '../../api/devices.ts';
import type { DeviceAction } from '../../api/types.ts';
import { accountOf } from '../../app/session.ts';
import { nameOf, toDeviceFilter } from './filter.ts';

/** What is acted on: named devices, or all that a filter lets through. It outlives the page: Back finds it. */
export type Selection =
  { kind: 'some'; names: ReadonlyMap<string, string> } | { kind: 'all'; filter: FleetFilter };

const none: Selection = { kind: 'some', names: new Map() };

export const selection = signal<Selection>(none);

export const clearSelection = (): void => void (selection.value = none);

/** Another person selects anew. */
const whose = computed(() => accountOf()?.accountAuthUuid);
effect(() => {
  void whose.value;
  clearSelection();
});

export const selectAll = (filter: FleetFilter): void =>
  void (selection.value = { kind: 'all', filter });

/** Of a filter that is not shown any more nothing is selected. */
export function forgetOtherFilter(filter: FleetFilter): void {
  const { value } = selection;
  if (value.kind === 'all' && nameOf(value.filter) !== nameOf(filter)) clearSelection();
}

export const isSelected = (uuid: string): boolean => {
  const { value } = selection;
  return value.kind === 'all' || value.names.has(uuid);
};

/** Selects these devices of a page, or none of them; `page`: all of it, which stays of a selection of all. */
export function select(
  devices: readonly ListedDevice[],
  isOn: boolean,
  page: readonly ListedDevice[],
): void {
  const { value } = selection;
  const before = value.kind === 'some' ? value.names : namesOf(page);
  const names = new Map(before);
  for (const [uuid, name] of namesOf(devices))
    if (isOn) names.set(uuid, name);
    else names.delete(uuid);
  selection.value = { kind: 'some', names };
}

const namesOf = (devices: readonly ListedDevice[]) =>
  new Map(devices.map(({ uuid, name }) => [uuid, name]));

/** How many they are; `matching`: how many the filter lets through. */
export const countSelected = (of: Selection, matching: number): number =>
  of.kind === 'all' ? matching : of.names.size;

/** The same for a request. */
export const toTarget = (of: Selection): Pick<DeviceAction, 'deviceAuthUuids' | 'filter'> =>
  of.kind === 'all'
    ? { filter: toDeviceFilter(of.filter) }
    : { deviceAuthUuids: [...of.names.keys()] };
