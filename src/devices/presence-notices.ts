import type { PresenceNotice, PresentDevice } from '../bus/bus.ts';

/** A device's row of `presence`. */
export type SavedSighting = Omit<PresentDevice, 'uuid'>;

/** Of an account: of more devices at once, each reader is told to ask again anyway. */
export const namedAtOnce = 100;

/** What other processes are told of rows that were written, by account. */
export function noticesOf(
  saved: readonly SavedSighting[],
  find: (deviceId: number) => { uuid: string; accountId: number } | undefined,
): PresenceNotice[] {
  const named = saved.flatMap((sighting) => {
    const device = find(sighting.deviceId);
    return device ? [{ sighting, device }] : [];
  });
  return [...Map.groupBy(named, ({ device }) => device.accountId)].map(([accountId, of]) => ({
    accountId,
    devices:
      of.length > namedAtOnce
        ? null
        : of.map(({ sighting, device: { uuid } }) => ({ ...sighting, uuid })),
  }));
}
