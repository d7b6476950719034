import type { Sql } from '../db/sql.ts';

/**
 * How far a stream has come: everything that the snapshot sees has been sent. A sequence number would skip a
 * transaction that draws its numbers early and commits late; a snapshot lists such a transaction as still open.
 * `ts` (ms) is when the snapshot was taken. `server` is the database server whose transactions it numbers. A
 * portable copy comes from another server, and that server's numbers mean nothing here.
 */
export type StreamPosition = { ts: number; server: string; snapshot: string };

/** Writes the position as the id of a server-sent event. */
export function writePosition({ ts, server, snapshot }: StreamPosition): string {
  return `${ts}.${snapshot}.${server}`;
}

/** Null for text that `writePosition` did not write. Version 0.1.0 named no server; `server` is then empty. */
export function parsePosition(text: string): StreamPosition | null {
  const match =
    /^(\d{1,15})\.(\d{1,19}:\d{1,19}:(?:\d{1,19}(?:,\d{1,19})*)?)(?:\.([0-9a-f]{1,32}))?$/.exec(
      text,
    );
  if (!match) return null;
  const [, ts = '', snapshot = '', server = ''] = match;
  // The database would refuse bounds out of order, and open transactions outside them.
  const { xmin, xmax, open } = read(snapshot);
  if (xmin < 1n || xmax < xmin || xmax > maxXid) return null;
  const ordered = open.every((x, i) => x >= xmin && x < xmax && x > (open[i - 1] ?? 0n));
  return ordered ? { ts: Number(ts), server, snapshot } : null;
}

/**
 * The position of a reader that has seen, between two positions, the transactions up to `xact`. Transactions up
 * to it that were open at `from` count as seen unless they are still open at `to`. For later ones `from` still
 * holds.
 */
export function advance(from: StreamPosition, to: StreamPosition, xact: string): StreamPosition {
  const [before, now, last] = [read(from.snapshot), read(to.snapshot), BigInt(xact)];
  const xmax = before.xmax > last ? before.xmax : last + 1n;
  const open = new Set([
    ...now.open.filter((x) => x < xmax),
    ...before.open.filter((x) => x > last),
  ]);
  const sorted = [...open].sort((a, b) => (a < b ? -1 : 1));
  return {
    ts: from.ts,
    server: to.server,
    snapshot: `${sorted[0] ?? xmax}:${xmax}:${sorted.join(',')}`,
  };
}

/**
 * Where a reader that was at `from` resumes: there, or at the very beginning if the database does not know that
 * position. It is ahead of the present after a restored backup of this server, and another server's after a
 * restored portable copy. Events may then be sent again; none is skipped.
 */
export function resumeAt(from: StreamPosition, present: StreamPosition): StreamPosition {
  if (isKnownTo(from, present)) return from;
  return { ts: from.ts, server: present.server, snapshot: '1:1:' };
}

/** Whether the position is this database's and not ahead of the present. */
export function isKnownTo(from: StreamPosition, present: StreamPosition): boolean {
  if (from.server !== present.server) return false;
  return read(from.snapshot).xmax <= read(present.snapshot).xmax;
}

const maxXid = 2n ** 63n - 1n;

function read(snapshot: string): { xmin: bigint; xmax: bigint; open: bigint[] } {
  const [xmin = '', xmax = '', open = ''] = snapshot.split(':');
  return {
    xmin: BigInt(xmin),
    xmax: BigInt(xmax),
    open: open === '' ? [] : open.split(',').map(BigInt),
  };
}

/** The present position: everything that is committed now. */
export async function readPosition(sql: Sql): Promise<StreamPosition> {
  const { rows } = await sql.query<StreamPosition>({
    name: 'stream-position',
    text: `
      select pg_current_snapshot()::text as snapshot,
             (select to_hex(system_identifier) from pg_control_system())
               || to_hex((select oid::bigint from pg_database where datname = current_database()))
               as server,
             trunc(extract(epoch from clock_timestamp()) * 1000)::bigint as ts`,
  });
  if (!rows[0]) throw new Error('The database did not say what is committed.');
  return rows[0];
}
