import type { Sql } from '../db/sql.ts';
import type { StreamScope, StreamedRow } from './feed.ts';
import type { StreamPosition } from '../streams/position.ts';
import type { EventRow } from './view.ts';

/** How far the scan has come: the table's own key. */
type Place = { deviceId: number; type: string; ts: number; key: string };

type ArchivedRow = EventRow & { key: string };

/**
 * Replaces the feed for a reader that was away longer than the feed is kept: all events of the scope
 * are scanned, device by device.
 */
export async function* walkArchive(
  sql: Sql,
  scope: StreamScope,
  between: { from: StreamPosition; to: StreamPosition },
  limit: number,
): AsyncGenerator<StreamedRow[]> {
  for (const device of await listDevices(sql, scope)) {
    let after: Place = { deviceId: device.id, type: '', ts: 0, key: '' };
    for (;;) {
      const rows = await readArchive(sql, after, between, limit);
      const last = rows.at(-1);
      if (last)
        yield rows.map(({ key: _key, ...row }) => ({
          ...row,
          deviceId: device.id,
          uuid: device.uuid,
        }));
      if (!last || rows.length < limit) break;
      after = { deviceId: device.id, type: last.type, ts: last.ts, key: last.key };
    }
  }
}

async function listDevices(sql: Sql, { accountId, deviceId }: StreamScope) {
  const { rows } = await sql.query<{ id: number; uuid: string }>({
    name: 'stream-devices',
    text: `
      select id, uuid
        from device
       where account_id = $1 and ($2::bigint is null or id = $2)
       order by id`,
    values: [accountId, deviceId],
  });
  return rows;
}

async function readArchive(
  sql: Sql,
  after: Place,
  { from, to }: { from: StreamPosition; to: StreamPosition },
  limit: number,
): Promise<ArchivedRow[]> {
  const { rows } = await sql.query<ArchivedRow>({
    name: 'stream-archive',
    text: `
      select e.type, e.ts, e.key, e.seq, e.body
        from event e
       where e.device_id = $1
         and (e.type, e.ts, e.key) > ($2::text, ms_to_timestamp($3), $4::text)
         and e.xact >= pg_snapshot_xmin($5::pg_snapshot)
         and not pg_visible_in_snapshot(e.xact, $5::pg_snapshot)
         and pg_visible_in_snapshot(e.xact, $6::pg_snapshot)
       order by e.type, e.ts, e.key
       limit $7`,
    values: [after.deviceId, after.type, after.ts, after.key, from.snapshot, to.snapshot, limit],
  });
  return rows;
}
