/**
 * How far a stream has come: everything that the snapshot sees has been sent. Unlike a sequence
 * number it cannot pass over a transaction that drew its numbers early and commits late: such a one
 * is named in the snapshot as still open. `ts` (ms) is when it was taken.
 */
export type Position = { ts: number; snapshot: string };

/** As the id of a server-sent event. */
export function writePosition({ ts, snapshot }: Position): string {
  return `${ts}.${snapshot}`;
}

/** Null for what `writePosition` did not write. */
export function parsePosition(text: string): Position | null {
  const match = /^(\d{1,15})\.((\d{1,19}):(\d{1,19}):((?:\d{1,19}(?:,\d{1,19})*)?))$/.exec(text);
  if (!match) return null;
  const [, ts = '', snapshot = '', min = '', max = '', open = ''] = match;
  // What the database would refuse to read: bounds out of order, or open transactions out of bounds.
  const [from, until] = [BigInt(min), BigInt(max)];
  if (from < 1n || until < from || until > maxXid) return null;
  const xids = open === '' ? [] : open.split(',').map(BigInt);
  const ordered = xids.every((xid, i) => xid >= from && xid < until && xid > (xids[i - 1] ?? 0n));
  return ordered ? { ts: Number(ts), snapshot } : null;
}

const maxXid = 2n ** 63n - 1n;
