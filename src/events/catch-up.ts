import type { AlarmChangeRow } from '../contract/alarm.ts';
import type { Sql } from '../db/sql.ts';
import { feedMs } from '../history/prune.ts';
import { walkArchive } from './archive.ts';
import { readFeed, type FeedRow, type StreamedRow, type StreamScope } from './feed.ts';
import { advance, resumeAt, type StreamPosition } from '../streams/position.ts';

/** A page of events, each with the position of a reader that has seen it, and that after the page. */
export type Page = {
  events: { row: StreamedRow; position: StreamPosition }[];
  position: StreamPosition;
};

const pageRows = 200;

/** A transaction may commit long after the time that its snapshot names. */
const slackMs = 3_600_000;

/** What a reader is sent that was away longer than the feed is kept. */
export type Archive = {
  /** Reads its pages, in turn. */
  sql: Sql;
  /** Alarms that changed between two positions, each as it is now; pages of `limit` rows at most. */
  walkAlarms?: WalkAlarms;
};

export type WalkAlarms = (
  sql: Sql,
  scope: StreamScope,
  between: { from: StreamPosition; to: StreamPosition },
  limit: number,
) => AsyncGenerator<AlarmChangeRow[]>;

/** All that was committed between two positions; the last page, which may be empty, reaches `to`. */
export async function* catchUpEvents(
  sql: Sql,
  scope: StreamScope,
  from: StreamPosition,
  to: StreamPosition,
  archive: Archive = { sql },
): AsyncGenerator<Page> {
  const start = resumeAt(from, to);
  const isLongAgo = to.ts - from.ts > feedMs - slackMs;
  yield* isLongAgo ? fromArchive(archive, scope, start, to) : fromFeed(sql, scope, start, to);
  yield { events: [], position: to };
}

/** The archive is not in the order of transactions: a reader that disconnects starts over. */
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
      // Within a transaction, and where its end is not known, a reader is where it was before it.
      if (next && next.xact !== row.xact) position = advance(from, to, row.xact);
      if (!next && isEnd) position = to;
      return { row, position };
    });
    yield { events, position };
    if (isEnd) return;
    after = last;
  }
}
