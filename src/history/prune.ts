import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { deleteInBatches } from '../db/delete-in-batches.ts';
import { historyTables, readHistoryKind, type HistoryTable } from './kind.ts';
import { dayMs, daysOf, listOldChunks, type Retention } from './retention.ts';

export type PruneOptions = {
  /** Infinity days: all of that is kept. */
  retention: Retention;
  nowTs: number;
  /** Stops between two batches. */
  signal?: AbortSignal;
  batchRows?: number;
};

/** The newest events and changes of alarms are kept this long for streams that resume. */
export const feedMs = 24 * 3_600_000;

/** An advisory lock of its own. */
const pruneLock = 7203;

/**
 * Deletes rows beyond the retention, a batch in each transaction. With TimescaleDB that is only the feed of
 * streams: of the rest whole chunks are dropped, one in each transaction. Returns the number of deleted rows.
 */
export async function pruneHistory(db: Database, options: PruneOptions): Promise<number> {
  let deleted = 0;
  for (const feed of feeds) deleted += await pruneFeed(db, feed, options);
  if ((await readHistoryKind(db)) === 'timescaledb') {
    await dropChunks(db, options);
    return deleted;
  }
  for (const table of historyTables) deleted += await pruneTable(db, table, options);
  return deleted;
}

/** What streams read. */
const feeds = ['event_feed', 'alarm_change'] as const;

async function pruneFeed(
  db: Database,
  feed: (typeof feeds)[number],
  options: PruneOptions,
): Promise<number> {
  const { batchRows, nowTs, signal } = options;
  const deleteSome = (limit: number) =>
    db.query(
      `delete from ${feed}
        where ctid = any(array(
          select ctid from ${feed} where recorded_at < ms_to_timestamp($1) limit $2))`,
      [nowTs - feedMs, limit],
    );
  return deleteInBatches(deleteSome, { signal, limit: batchRows });
}

const chunked = ['measurement', 'measurement_hour', 'event', 'event_sense'];

/**
 * Drops the chunks that lie wholly beyond the retention. The function is the owner's and waits two seconds for its
 * locks: what a long export holds, or something else, fails here, keeps nothing else, and is tried with the next run.
 */
async function dropChunks(db: Database, options: PruneOptions): Promise<void> {
  await removePolicies(db);
  const errors: unknown[] = [];
  for (const relation of chunked)
    await dropChunksOf(db, relation, options).catch((error: unknown) => errors.push(error));
  if (errors.length > 0) throw errors[0];
}

async function dropChunksOf(
  db: Database,
  relation: string,
  { retention, nowTs, signal }: PruneOptions,
): Promise<void> {
  const days = daysOf(relation, retention);
  if (days === Infinity) return;
  for (const endTs of await listOldChunks(db, relation, nowTs - days * dayMs)) {
    if (signal?.aborted === true) return;
    await db.transaction(async (tx) => {
      if (!(await takeTurn(tx))) return;
      await tx.query('select drop_history_chunks($1::regclass, ms_to_timestamp($2))', [
        relation,
        endTs,
      ]);
    });
  }
}

/** A policy that an earlier version made when it started beside this one: it deletes by a clock that may be wrong. */
async function removePolicies(db: Sql): Promise<void> {
  await db.query(
    `select drop_history_chunks(r::regclass, '-infinity')
       from unnest($1::text[]) as r
      where exists (
        select from timescaledb_information.jobs j
          left join timescaledb_information.continuous_aggregates a
            on a.materialization_hypertable_schema = j.hypertable_schema
           and a.materialization_hypertable_name = j.hypertable_name
         where j.proc_name = 'policy_retention'
           and coalesce(a.view_schema, j.hypertable_schema) = current_schema
           and coalesce(a.view_name, j.hypertable_name) = r)`,
    [chunked],
  );
}

/** One process prunes at a time. */
async function takeTurn(tx: Sql): Promise<boolean> {
  const { rows } = await tx.query<{ held: boolean }>(
    'select pg_try_advisory_xact_lock($1) as held',
    [pruneLock],
  );
  return rows[0]?.held === true;
}

/** Values of a key's columns before `ts`: they select one range of the index. */
type Stretch = (number | string)[];

/** No key begins with one of these. */
const least = { series_id: 0, device_id: 0, type: '', s_id: '' };

async function pruneTable(
  db: Database,
  table: HistoryTable,
  { retention, nowTs, signal, batchRows = 10_000 }: PruneOptions,
): Promise<number> {
  const days = daysOf(table.name, retention);
  if (days === Infinity) return 0;
  const beforeTs = nowTs - days * dayMs;
  let after: Stretch | null = table.key.map((column) => least[column]);
  let total = 0;
  while (after && signal?.aborted !== true) {
    const batch: Batch = await pruneBatch(db, table, after, beforeTs, batchRows);
    total += batch.deleted;
    if (batch.deleted < batchRows) after = batch.last;
  }
  return total;
}

type Batch = { deleted: number; last: Stretch | null };

/**
 * There is no index by time alone: it would cost every insert. The key is walked range by range; one
 * look-up finds the next range, however many rows the one before it has.
 */
async function pruneBatch(
  db: Database,
  { name, key }: HistoryTable,
  after: Stretch,
  beforeTs: number,
  batchRows: number,
): Promise<Batch> {
  return db.transaction(async (tx) => {
    if (!(await takeTurn(tx))) return { deleted: 0, last: null };
    const columns = (of: string) => key.map((column) => `${of}.${column}`).join();
    const next = (before: string) => `
      select ${columns('t')} from ${name} t
       where (${columns('t')}) > (${before})
       order by ${columns('t')}
       limit 1`;
    const { rows } = await tx.query<{ deleted: number; last: Stretch | null }>(
      `with recursive stretch as (
         (${next(key.map((_, i) => `$${i + 3}`).join())})
         union all
         select found.* from stretch cross join lateral (${next(columns('stretch'))}) found
       ), chosen as materialized (
         select * from stretch limit 200
       ), gone as (
         delete from ${name}
          where ctid = any(array(
            select old.ctid
              from chosen
             cross join lateral (
               select t.ctid
                 from ${name} t
                where (${columns('t')}) = (${columns('chosen')})
                  and t.ts < ms_to_timestamp($1)) old
             limit $2))
         returning 1
       )
       select (select count(*) from gone) as deleted,
              (select json_build_array(${columns('c')})
                 from chosen c
                order by ${key.map((column) => `c.${column} desc`).join()}
                limit 1) as last`,
      [beforeTs, batchRows, ...after],
    );
    return { deleted: rows[0]?.deleted ?? 0, last: rows[0]?.last ?? null };
  });
}
