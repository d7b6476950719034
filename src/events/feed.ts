import type { AlarmChangeRow } from '../contract/alarm.ts';
import type { Sql } from '../db/sql.ts';
import { feedMs } from '../history/retention.ts';
import { advance, resumeAt, type StreamPosition } from '../streams/position.ts';
import { addMeanings } from './meanings.ts';
import type { EventRow } from './schema.ts';

/** A page of events. Each `position` is where a reader resumes: after that event, or after the whole page. */
export type Page = {
  events: { row: StreamedRow; position: StreamPosition }[];
  position: StreamPosition;
};

const pageRows = 200;

/** A transaction may commit long after its snapshot's time, so the archive takes over this much early. */
const slackMs = 3_600_000;

/** What replaces the feed for a reader that was away for longer than the feed is kept. */
type Archive = {
  /** Its queries wait for the account's place among other large reads. */
  sql: Sql;
  /** Lists alarms that changed between two positions, each as it is now, in pages of at most `limit` rows. */
  walkAlarms?: WalkAlarms;
};

export type WalkAlarms = (
  sql: Sql,
  scope: StreamScope,
  between: { from: StreamPosition; to: StreamPosition },
  limit: number,
) => AsyncGenerator<AlarmChangeRow[]>;

/** Yields what was committed between two positions. The last page may be empty; its position is `to`. */
export async function* replayEvents(
  sql: Sql,
  scope: StreamScope,
  from: StreamPosition,
  to: StreamPosition,
  archive: Archive = { sql },
): AsyncGenerator<Page> {
  const start = resumeAt(from, to);
  const isLongAgo = to.ts - from.ts > feedMs - slackMs;
  const pages = isLongAgo
    ? fromArchive(archive, scope, start, to)
    : fromFeed(sql, scope, start, to);
  for await (const page of pages) {
    const rows = page.events.map(({ row }) => row);
    await addMeanings(sql, scope.accountId, rows);
    yield page;
  }
  yield { events: [], position: to };
}

/** The archive is not ordered by transaction, so a reader that disconnects midway starts over. */
async function* fromArchive(
  { sql, walkAlarms }: Archive,
  scope: StreamScope,
  from: StreamPosition,
  to: StreamPosition,
): AsyncGenerator<Page> {
  const toPage = (rows: StreamedRow[]): Page => ({
    events: rows.map((row) => ({ row, position: from })),
    position: from,
  });
  for await (const rows of walkArchive(sql, scope, { from, to }, pageRows)) yield toPage(rows);
  if (!walkAlarms) return;
  for await (const rows of walkAlarms(sql, scope, { from, to }, pageRows)) yield toPage(rows);
}

async function* fromFeed(
  sql: Sql,
  scope: StreamScope,
  from: StreamPosition,
  to: StreamPosition,
): AsyncGenerator<Page> {
  let position = from;
  let after: FeedRow | null = null;
  for (;;) {
    const rows: FeedRow[] = await readFeed(sql, scope, { from, to }, after, pageRows);
    const last = rows.at(-1);
    if (!last) return;
    const isEnd = rows.length < pageRows;
    const events = rows.map((row, i) => {
      const next = rows[i + 1];
      // Only a transaction's last row moves the position past it: a reader that disconnects within one is sent
      // all of it again. The last row of a full page may not be the last of its transaction.
      if (next && next.xact !== row.xact) position = advance(from, to, row.xact);
      if (!next && isEnd) position = to;
      return { row, position };
    });
    yield { events, position };
    if (isEnd) return;
    after = last;
  }
}

/** How far the scan has come, by the table's key. */
type Place = { deviceId: number; type: string; ts: number; key: string };

type ArchivedRow = EventRow & { key: string };

/**
 * Replaces the feed for a reader that was away for longer than the feed is kept: scans all events of the scope,
 * device by device.
 */
async function* walkArchive(
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

/** What a stream covers: all devices of an account, or one of them. */
export type StreamScope = { accountId: number; deviceId: number | null };

/** An event, or a change of an alarm. */
export type StreamedRow = AlarmChangeRow | (EventRow & { deviceId: number; uuid: string });

/** `xact` orders the feed. It is text because a double cannot hold every transaction id. */
type FeedRow = StreamedRow & { xact: string };

/** Condition, order and limit of a page, for a feed with the alias `f`. */
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
 * Reads what was committed between two positions, in the order of transactions: at most `limit` rows after
 * `after`. A row lies between them if the later snapshot sees it and the earlier one does not.
 */
async function readFeed(
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
