import type { Database } from '../db/database.ts';
import { kindOf, stateOf, states } from '../db/errors.ts';
import type { Transaction } from '../db/transaction.ts';
import { backoffMs, pause } from '../lib/wait.ts';
import { beginBatch, listOwnDevices, type Owner } from './queries.ts';
import type { ImportPorts, ImportRow } from './ports.ts';

export type StoreImportDeps = Pick<ImportPorts, 'add' | 'store' | 'hold' | 'note' | 'count'> & {
  db: Database;
  clock: () => number;
  /** Milliseconds that only go forward. */
  nowMs: () => number;
};

/** What became of a batch. */
export type StoredBatch = {
  added: number;
  repeated: number;
  rejected: { row: ImportRow; reason: string }[];
  /** Of devices that are gone, or out of reach, since they were looked up. */
  gone: ImportRow[];
};

/** How it is tried. */
type Attempt = {
  /** No measurement of it is expected to be there already. */
  areNew: boolean;
  /** Devices are held before their rows are written, not after it. */
  holdsFirst: boolean;
};

/** Ingest waits for a transaction that waits for it; so long at most. */
const longestWaitMs = 50;
/** What the database cannot take for now is tried again for so long. */
const triesForMs = 10_000;
const retryAfter = { firstMs: 10, maxMs: 500 };

/**
 * Stores a batch in one transaction: all of it, or nothing. A device's row is held at the end of it only, so
 * that its messages go on being stored meanwhile. Where one of those wrote the same milliseconds the two may wait
 * for each other; then the import gives way (`beginBatch`), and holds the rows first when it tries again.
 * `areNew`: a guess, which costs another attempt where it is wrong. Throws `unavailable` where the database
 * was away for too long, or `signal` aborted.
 */
export async function storeImported(
  rows: ImportRow[],
  owner: Owner,
  areNew: boolean,
  signal: AbortSignal,
  deps: StoreImportDeps,
): Promise<StoredBatch> {
  const attempt: Attempt = { areNew, holdsFirst: false };
  const untilMs = deps.nowMs() + triesForMs;
  let failures = 0;
  for (;;) {
    try {
      return await deps.db.transaction((tx) => tryOnce(tx, rows, owner, attempt, deps));
    } catch (error) {
      const kind = kindOf(error);
      if (kind === 'unique' && attempt.areNew) {
        attempt.areNew = false;
        continue;
      }
      if (kind === 'unstorable') return storeHalves(rows, owner, signal, deps);
      if (!['unavailable', 'cancelled', 'serialization'].includes(kind)) throw error;
      if (isContended(error)) attempt.holdsFirst = true;
      // Whether it was committed may be unknown: then all of it is there already.
      else attempt.areNew = false;
      if (signal.aborted || deps.nowMs() > untilMs) throw error;
      failures += 1;
      await pause(backoffMs(failures, retryAfter), signal);
    }
  }
}

async function tryOnce(
  tx: Transaction,
  rows: ImportRow[],
  owner: Owner,
  { areNew, holdsFirst }: Attempt,
  deps: StoreImportDeps,
): Promise<StoredBatch> {
  await beginBatch(tx, longestWaitMs);
  const uuids = [...new Set(rows.map(({ uuid }) => uuid))];
  const own = await listOwnDevices(tx, owner, uuids);
  const ids = new Set(own.map(({ deviceId }) => deviceId));
  const isThere = ({ deviceId }: ImportRow) => ids.has(deviceId);
  const there = ids.size === uuids.length ? rows : rows.filter(isThere);
  const gone = there === rows ? [] : rows.filter((row) => !isThere(row));
  if (holdsFirst) await deps.hold(tx, [...ids]);
  let added = there.length;
  let crowded: ImportRow[] = [];
  if (areNew) await deps.add(tx, there);
  else ({ added, crowded } = await deps.store(tx, there));
  if (added > 0) {
    await deps.note(tx, there, deps.clock());
    await deps.count(tx, owner.accountId, there, added);
  }
  const reason = 'invalid: the millisecond has 1,000 values of this sense, and no room for more';
  const rejected = crowded.map((row) => ({ row, reason }));
  return { added, repeated: there.length - added - crowded.length, rejected, gone };
}

/** One of the rows is to blame: they are halved until it is alone. */
async function storeHalves(
  rows: ImportRow[],
  owner: Owner,
  signal: AbortSignal,
  deps: StoreImportDeps,
): Promise<StoredBatch> {
  const [first] = rows;
  if (rows.length === 1 && first) {
    const rejected = [{ row: first, reason: 'internal: the database refused it' }];
    return { added: 0, repeated: 0, rejected, gone: [] };
  }
  const middle = Math.ceil(rows.length / 2);
  const one = await storeImported(rows.slice(0, middle), owner, false, signal, deps);
  const other = await storeImported(rows.slice(middle), owner, false, signal, deps);
  return {
    added: one.added + other.added,
    repeated: one.repeated + other.repeated,
    rejected: [...one.rejected, ...other.rejected],
    gone: [...one.gone, ...other.gone],
  };
}

/** It waited for a lock, or would have waited in a circle. */
function isContended(error: unknown): boolean {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return [states.lockNotAvailable, states.deadlockDetected].some(
    (state) => state === stateOf(cause),
  );
}
