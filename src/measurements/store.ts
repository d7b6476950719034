import { CopyRows } from '../db/copy-rows.ts';
import type { Sql } from '../db/sql.ts';
import type { Transaction } from '../db/transaction.ts';
import { listMissing, listThere } from './neighbours.ts';
import { placeBeside } from './place-beside.ts';
import { insertPoints } from './points.ts';
import { createKnownSeries, findSeries, lookUpSeries, recallSeries } from './series.ts';
import type { KnownSeries } from './series.ts';

/** `ts` in milliseconds; a position has its latitude in `val` and its longitude in `long`. */
export type StoredMeasurement = {
  deviceId: number;
  sId: string;
  ts: number;
  val: number;
  long?: number | undefined;
};

/**
 * Stores a batch; what is there already (same sense, time and value) stays once, and another value in
 * the same millisecond is kept beside it. Gives those for which that millisecond has no room left.
 * `known` spares the look for a sense's series. `onAdded`: told of each row that was not there before. Once a
 * transaction, this or `addMeasurements`.
 */
export async function storeMeasurements<M extends StoredMeasurement>(
  tx: Sql,
  rows: readonly M[],
  known: KnownSeries = createKnownSeries(),
  onAdded?: (row: M) => void,
): Promise<M[]> {
  const { crowded } = await storeCounted(tx, rows, known, onAdded);
  return crowded;
}

/** The same, and how many of them were not there before. */
export async function storeCounted<M extends StoredMeasurement>(
  tx: Sql,
  rows: readonly M[],
  known: KnownSeries = createKnownSeries(),
  onAdded?: (row: M) => void,
): Promise<{ added: number; crowded: M[] }> {
  if (rows.length === 0) return { added: 0, crowded: [] };
  const ids = recallSeries(rows, known) ?? (await findSeries(tx, rows, known));
  const points = rows.map((row, i) => toPoint(row, ids[i] as number));
  const tell = onAdded && (({ row }: (typeof points)[number]) => onAdded(row));
  const inserted = await insertPoints(tx, points, tell);
  if (inserted === points.length) return { added: inserted, crowded: [] };
  const missing = await listMissing(tx, points);
  if (missing.length === 0) return { added: inserted, crowded: [] };
  const { added, unplaced } = await placeBeside(tx, missing, tell);
  return { added: inserted + added, crowded: unplaced.map(({ row }) => row) };
}

/** Those of the measurements that are stored. Adds nothing, so that it may go before one of the other two. */
export async function findStored<M extends StoredMeasurement>(
  tx: Sql,
  rows: readonly M[],
): Promise<M[]> {
  const ids = await lookUpSeries(tx, rows);
  const points = rows.flatMap((row, i) => {
    const seriesId = ids[i];
    return seriesId === undefined ? [] : [toPoint(row, seriesId)];
  });
  const there = points.length > 0 ? await listThere(tx, points) : [];
  return there.map(({ row }) => row);
}

const toPoint = <M extends StoredMeasurement>(row: M, seriesId: number) => {
  const { ts, val, long = NaN } = row;
  return { row, seriesId, ts, micros: 0, val, long };
};

/**
 * The same of a batch in which no millisecond of a sense is expected to have a value already: takes the
 * database half the work. Throws a `unique_violation` (23505) where one has; the transaction is void then.
 */
export async function addMeasurements(
  tx: Transaction,
  rows: readonly StoredMeasurement[],
  known: KnownSeries = createKnownSeries(),
): Promise<void> {
  if (rows.length === 0) return;
  const ids = recallSeries(rows, known) ?? (await findSeries(tx, rows, known));
  const copied = new CopyRows();
  for (const [i, { ts, val, long = NaN }] of rows.entries()) {
    // Zero has no sign in the history; nor has it in JSON as it is written here.
    copied
      .row(4)
      .bigint(ids[i] as number)
      .timestamptz(ts)
      .float8(val + 0)
      .float8(long + 0);
  }
  await tx.copyIn(
    'copy measurement (series_id, ts, val, long) from stdin (format binary)',
    copied.end(),
  );
}
