import type { ServerResponse } from 'node:http';
import type { ByteRoom } from '../../src/lib/byte-room.ts';
import type { Tuning } from '../options.ts';

/**
 * Ends the connection of a device that does not take its answer: as late as one over MQTT that does not acknowledge,
 * and sooner while others wait for the room. What it has not got is in its next answer.
 */
export function limitTaking(
  response: ServerResponse,
  room: Pick<ByteRoom, 'isWanted'>,
  {
    downlinkTimeoutMs,
    wantedDownlinkTimeoutMs,
  }: Pick<Tuning, 'downlinkTimeoutMs' | 'wantedDownlinkTimeoutMs'>,
): void {
  if (response.closed) return;
  const end = (): void => void response.destroy();
  const last = setTimeout(end, downlinkTimeoutMs);
  const looking = setInterval(() => room.isWanted && end(), wantedDownlinkTimeoutMs);
  for (const timer of [last, looking]) timer.unref();
  response.once('close', () => {
    clearTimeout(last);
    clearInterval(looking);
  });
}
