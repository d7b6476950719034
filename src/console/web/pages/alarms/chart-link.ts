import type { ListedAlarm } from '../../api/types.ts';
import { now } from '../../app/now.ts';

const hourMs = 3_600_000;

/** The device's chart around the time when an alarm began: what came before it is seen, too. */
export function chartAt({ deviceAuthUuid, sinceTs, closedTs }: ListedAlarm): string {
  const over = closedTs ?? now();
  const end = Math.min(now(), over + hourMs, sinceTs + 12 * hourMs);
  return `devices/${deviceAuthUuid}?from=${sinceTs - hourMs}&to=${Math.max(end, sinceTs + 1)}`;
}
