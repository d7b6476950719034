import type { Sql } from '../db/sql.ts';
import type { Listening } from '../engine/listening.ts';
import { createHeardConnectors } from './heard.ts';
import { gapSeconds, keptDays, listHeard } from './queries.ts';

/**
 * When the connector of a device listened from `sinceTs` on (ms), for a process without connectors; undefined where
 * its connector is not configured, which counts as listening. `leaderOf`: as of `startListening`.
 */
export async function findListening(
  db: Sql,
  deviceId: number,
  { sinceTs, nowTs }: { sinceTs: number; nowTs: number },
  leaderOf: (connectorId: number) => number | null,
): Promise<Listening | undefined> {
  const { rows } = await db.query<{ connector_id: number }>(
    `
      select coalesce(p.connector_id, d.connector_id) as connector_id
        from device d
        left join presence p on p.device_id = d.id
       where d.id = $1`,
    [deviceId],
  );
  const leaderId = rows[0] ? leaderOf(rows[0].connector_id) : null;
  if (leaderId === null) return undefined;
  const heard = createHeardConnectors(keptDays * 86_400_000, gapSeconds * 1_000);
  heard.note(await listHeard(db, sinceTs, leaderId));
  return heard.of(leaderId, nowTs);
}
