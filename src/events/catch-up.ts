import type { Sql } from '../db/database.ts';
import { feedMs } from '../db/history/prune.ts';
import { walkArchive } from './archive.ts';
import { readFeed, type StreamedRow, type StreamScope } from './feed.ts';
import type { Position } from './position.ts';

/** Rows with the position that a reader of the last of them has come to. */
export type Caught = { rows: StreamedRow[]; position: Position };

const pageRows = 200;

/** A transaction may take its time between the moment it names and its commit. */
const slackMs = 3_600_000;

/**
 * All that was committed between two positions, in pages. Before the last page is out a reader that
 * breaks off has to begin again, so only that page carries the new position.
 */
export async function* catchUp(
  sql: Sql,
  scope: StreamScope,
  from: Position,
  to: Position,
): AsyncGenerator<Caught> {
  if (to.ts - from.ts > feedMs - slackMs) {
    for await (const rows of walkArchive(sql, scope, { from, to }, pageRows)) {
      yield { rows, position: from };
    }
    yield { rows: [], position: to };
    return;
  }
  const between = { from: isAhead(from, to) ? beginning(from) : from, to };
  let after: { xact: string; seq: number } | null = null;
  for (;;) {
    const rows = await readFeed(sql, scope, between, after, pageRows);
    const last = rows.at(-1);
    if (!last || rows.length < pageRows) {
      yield { rows, position: to };
      return;
    }
    yield { rows, position: from };
    after = last;
  }
}

/** A position ahead of the present is from before a backup was restored: all of the feed is sent again. */
function isAhead(from: Position, to: Position): boolean {
  return xmaxOf(from) > xmaxOf(to);
}

function xmaxOf({ snapshot }: Position): bigint {
  return BigInt(snapshot.split(':')[1] ?? '0');
}

/** A snapshot that sees nothing. */
function beginning({ ts }: Position): Position {
  return { ts, snapshot: '1:1:' };
}
