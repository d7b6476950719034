import type { Database } from '../database.ts';
import { historyTables, readHistoryKind, type HistoryTable } from './kind.ts';
import { daysOf, type Retention } from './retention.ts';

export type PruneOptions = {
  retention: Retention;
  nowTs: number;
  /** Stops between two batches. */
  signal?: AbortSignal;
  batchRows?: number;
};

/** The newest events are kept this long for streams that resume. */
export const feedMs = 24 * 3_600_000;

const dayMs = 86_400_000;

/** Any number that nothing else locks: one process prunes at a time. */
const pruneLock = 7203;

/**
 * Deletes what is past its time, a batch a transaction. With TimescaleDB that is only what streams
 * resume from: whole chunks of the rest go by its own policies. Gives how many rows went.
 */
export async function pruneHistory(db: Database, options: PruneOptions): Promise<number> {
  let deleted = await pruneFeed(db, options);
  if ((await readHistoryKind(db)) === 'timescaledb') return deleted;
  for (const table of historyTables) deleted += await pruneTable(db, table, options);
  return deleted;
}

async function pruneFeed(db: Database, options: PruneOptions): Promise<number> {
  const { batchRows = 10_000, nowTs, signal } = options;
  let total = 0;
  while (signal?.aborted !== true) {
    const { rowCount } = await db.query(
      `delete from event_feed
        where ctid = any(array(
          select ctid from event_feed where recorded_at < ms_to_timestamp($1) limit $2))`,
      [nowTs - feedMs, batchRows],
    );
    total += rowCount ?? 0;
    if ((rowCount ?? 0) < batchRows) break;
  }
  return total;
}

type Pair = { deviceId: number; tag: string };

async function pruneTable(
  db: Database,
  table: HistoryTable,
  { retention, nowTs, signal, batchRows = 10_000 }: PruneOptions,
): Promise<number> {
  const beforeTs = nowTs - daysOf(table.name, retention) * dayMs;
  let after: Pair | null = { deviceId: 0, tag: '' };
  let total = 0;
  while (after && signal?.aborted !== true) {
    const batch: Batch = await pruneBatch(db, table, after, beforeTs, batchRows);
    total += batch.deleted;
    if (batch.deleted < batchRows) after = batch.last;
  }
  return total;
}

type Batch = { deleted: number; last: Pair | null };

/**
 * No index leads to what is old: it would cost every insert. The key does, device by device and
 * sense by sense; the next pair is found by one look, however many rows the pair before it has.
 */
async function pruneBatch(
  db: Database,
  { name, tag }: HistoryTable,
  after: Pair,
  beforeTs: number,
  batchRows: number,
): Promise<Batch> {
  return db.transaction(async (tx) => {
    const lock = await tx.query<{ held: boolean }>('select pg_try_advisory_xact_lock($1) as held', [
      pruneLock,
    ]);
    if (lock.rows[0]?.held !== true) return { deleted: 0, last: null };
    const next = (deviceId: string, tagOf: string) => `
      select t.device_id, t.${tag} as tag
        from ${name} t
       where (t.device_id, t.${tag}) > (${deviceId}, ${tagOf})
       order by t.device_id, t.${tag}
       limit 1`;
    const { rows } = await tx.query<{ deleted: number; device_id: number | null; tag: string }>(
      `with recursive pair as (
         (${next('$1::bigint', '$2::text')})
         union all
         select found.* from pair cross join lateral (${next('pair.device_id', 'pair.tag')}) found
       ), chosen as materialized (
         select device_id, tag from pair limit 200
       ), gone as (
         delete from ${name}
          where ctid = any(array(
            select old.ctid
              from chosen
             cross join lateral (
               select t.ctid
                 from ${name} t
                where t.device_id = chosen.device_id and t.${tag} = chosen.tag
                  and t.ts < ms_to_timestamp($3)) old
             limit $4))
         returning 1
       )
       select (select count(*) from gone) as deleted, last.device_id, last.tag
         from (values (1)) as one
         left join (select * from chosen order by device_id desc, tag desc limit 1) last on true`,
      [after.deviceId, after.tag, beforeTs, batchRows],
    );
    const row = rows[0];
    const last =
      typeof row?.device_id !== 'number' ? null : { deviceId: row.device_id, tag: row.tag };
    return { deleted: row?.deleted ?? 0, last };
  });
}
