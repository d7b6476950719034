import type { Alarm } from './alarm.ts';

/** Names that are longer together take more room than all else of an alarm. */
const nameBytes = 300;

/**
 * As how many events an alarm counts that opens, or goes on: 1 unless its names are long. They are written with each of
 * its changes.
 */
export function countsAs(
  { purposeName, stateName, eventName }: Pick<Alarm, 'purposeName' | 'stateName' | 'eventName'>,
  deviceName: string,
): number {
  const names = JSON.stringify([purposeName, stateName, eventName, deviceName]);
  return Math.max(1, Math.ceil(Buffer.byteLength(names) / nameBytes));
}
