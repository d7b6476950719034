import type { AlarmChangeRow } from '../contract/alarm.ts';
import type { Sql } from '../db/sql.ts';
import type { StreamPosition } from '../streams/position.ts';
import type { EventRow } from './view.ts';

/** What a stream is about: an account's devices, or one of them. */
export type StreamScope = { accountId: number; deviceId: number | null };

/** An event, or a change of an alarm. */
export type StreamedRow = AlarmChangeRow | (EventRow & { deviceId: number; uuid: string });

/** The feed's own order; a number's order by transaction, so a text: it exceeds what a double holds. */
export type FeedRow = StreamedRow & { xact: string };

/** Of a feed called `f`, each read as far as one page goes. */
const isBetween = `f.account_id = $1
            and ($2::bigint is null or f.device_id = $2)
            and f.xact >= pg_snapshot_xmin($3::pg_snapshot)
            and f.xact < pg_snapshot_xmax($4::pg_snapshot)
            and (f.xact, f.seq) > ($5::xid8, $6::bigint)
            and not pg_visible_in_snapshot(f.xact, $3::pg_snapshot)
            and pg_visible_in_snapshot(f.xact, $4::pg_snapshot)
          order by f.xact, f.seq
          limit $7`;

/**
 * What was committed between two positions, in the order of its transactions, `limit` rows at most
 * behind `after`. A row is in between when the later snapshot sees it and the earlier one did not.
 */
export async function readFeed(
  sql: Sql,
  { accountId, deviceId }: StreamScope,
  between: { from: StreamPosition; to: StreamPosition },
  after: { xact: string; seq: number } | null,
  limit: number,
): Promise<FeedRow[]> {
  const { rows } = await sql.query<FeedRow>({
    name: 'stream-feed',
    text: `
      select * from (
        (select f.xact, f.seq, f.type, f.ts, f.body, f.device_id as "deviceId", d.uuid
           from event_feed f
           join device d on d.id = f.device_id and d.account_id = f.account_id
          where ${isBetween})
        union all
        (select f.xact, f.seq, 'alarm', f.ts, f.body, f.device_id, f.device_uuid
           from alarm_change f
          where (f.body ->> 'change' = 'removed'
                 or exists (select from device d
                             where d.id = f.device_id and d.account_id = f.account_id))
            and ${isBetween})) as both_feeds
       order by xact, seq
       limit $7`,
    values: [
      accountId,
      deviceId,
      between.from.snapshot,
      between.to.snapshot,
      after?.xact ?? '0',
      after?.seq ?? 0,
      limit,
    ],
  });
  return rows;
}
