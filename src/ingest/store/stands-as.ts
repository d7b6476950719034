import type { DeviceContext } from '../rules/device-context.ts';

/**
 * Whether a device's row stays. Other members are kept elsewhere: what its senses' newest is in the history, and
 * in a table of their clocks; how many rejections it had. Asked of each device of each batch.
 */
export function keepsRow(before: DeviceContext, after: DeviceContext): boolean {
  return (
    after === before ||
    (after.runtime === before.runtime &&
      after.evidenceLog === before.evidenceLog &&
      after.current === before.current &&
      after.pending === before.pending &&
      after.pendingTs === before.pendingTs &&
      after.dueTs === before.dueTs &&
      after.senses === before.senses &&
      after.watched === before.watched &&
      after.device === before.device &&
      after.version === before.version &&
      standsAs(before, after))
  );
}

/** Whether a device's row has nothing new to keep, but perhaps its evidence. */
export function standsAs(before: DeviceContext, after: DeviceContext): boolean {
  return (
    after.place === before.place &&
    after.placeTs === before.placeTs &&
    after.reported === before.reported &&
    after.answersProfiles === before.answersProfiles
  );
}
