import type { Database } from '../db/database.ts';
import { deleteInBatches, type Sql } from '../db/sql.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** How many days of history are kept. */
export type Retention = { eventsDays: number; measurementsDays: number };

/** Kinds of history with a retention of their own. */
export const kept = ['measurements', 'events'] as const;
type Kept = (typeof kept)[number];

/** The retention in force, and what a shorter setting will make of it. `days` null: everything is kept. */
export type RetentionRow = {
  what: Kept;
  days: number | null;
  nextDays: number | null;
  nextTs: number | null;
};

/** About how much a shorter setting deletes. */
type Loss = { rows: number; chunks: number };

export type RetentionChange =
  /** A shorter setting takes effect at `atTs`, unless it is taken back. */
  | { kind: 'announced'; what: Kept; fromDays: number | null; toDays: number; atTs: number }
  | { kind: 'waiting'; what: Kept; fromDays: number | null; toDays: number; atTs: number }
  | { kind: 'shortened'; what: Kept; fromDays: number | null; toDays: number }
  /** The setting is no longer shorter: what was announced does not happen. */
  | { kind: 'taken-back'; what: Kept; days: number; toDays: number };

const dayMs = 86_400_000;

/** A shorter retention takes effect this long after it was first seen. */
const noticeMs = dayMs;

/** The key of an advisory lock: any number that nothing else uses. */
const retentionLock = 7202;

/** For how many days a table of the history, or its aggregate, is kept. */
function daysOf(relation: string, retention: Retention): number {
  return relation.startsWith('event') ? retention.eventsDays : retention.measurementsDays;
}

/**
 * Reconciles the configured retention with the one in force. A longer one takes effect at once, a shorter one after a
 * day, during which it can be taken back. If processes are configured differently, the longer setting wins, because
 * each process takes back what another announced. `nowTs` null: the clock is in doubt, and nothing is shortened.
 */
export async function settleRetention(
  db: Database,
  configured: Retention,
  nowTs: WallMs | null,
): Promise<RetentionChange[]> {
  return db.transaction(async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [retentionLock]);
    const rows = new Map((await listRetention(tx)).map((row) => [row.what, row]));
    const isNew = rows.size === 0 && (await isEmpty(tx));
    const changes: RetentionChange[] = [];
    for (const what of kept) {
      const row = rows.get(what) ?? { what, days: null, nextDays: null, nextTs: null };
      // A database without history has nothing to lose.
      const settled = isNew
        ? { row: { ...row, days: wanted(configured, what) }, change: null }
        : settle(row, wanted(configured, what), nowTs);
      if (settled.change) changes.push(settled.change);
      if (settled.row !== rows.get(what)) await saveRetention(tx, settled.row);
    }
    return changes;
  });
}

export const wanted = ({ eventsDays, measurementsDays }: Retention, what: Kept): number =>
  what === 'events' ? eventsDays : measurementsDays;

/** The next state of one row; the same row if nothing changes. Pure. */
export function settle(
  row: RetentionRow,
  toDays: number,
  nowTs: WallMs | null,
): { row: RetentionRow; change: RetentionChange | null } {
  const { what, days, nextDays, nextTs } = row;
  if (days !== null && toDays >= days) {
    if (toDays === days && nextDays === null) return { row, change: null };
    const change: RetentionChange | null =
      nextDays === null ? null : { kind: 'taken-back', what, days: toDays, toDays: nextDays };
    return { row: { what, days: toDays, nextDays: null, nextTs: null }, change };
  }
  if (nowTs === null) return { row, change: null };
  const about = { what, fromDays: days, toDays };
  if (nextDays !== toDays || nextTs === null) {
    const atTs = nowTs + noticeMs;
    return {
      row: { what, days, nextDays: toDays, nextTs: atTs },
      change: { kind: 'announced', ...about, atTs },
    };
  }
  if (nowTs < nextTs) return { row, change: { kind: 'waiting', ...about, atTs: nextTs } };
  return {
    row: { what, days: toDays, nextDays: null, nextTs: null },
    change: { kind: 'shortened', ...about },
  };
}

/** The retention in force, as rows. */
export async function listRetention(sql: Sql): Promise<RetentionRow[]> {
  const { rows } = await sql.query<RetentionRow>(
    `select what, days, next_days as "nextDays", next_at as "nextTs" from history_retention`,
  );
  return rows;
}

/**
 * What to keep: the longer of what is in force and what is configured, so that nothing is refused or deleted that
 * must still be kept. Infinity: everything.
 */
export function inForce(rows: readonly RetentionRow[], configured: Retention): Retention {
  const daysFor = (what: Kept) => {
    const row = rows.find((one) => one.what === what);
    return row ? Math.max(row.days ?? Infinity, wanted(configured, what)) : Infinity;
  };
  return { eventsDays: daysFor('events'), measurementsDays: daysFor('measurements') };
}

/** Applies announced retentions at once, because the operator says so. Returns what became shorter. */
export async function applyNext(db: Database): Promise<RetentionRow[]> {
  const { rows } = await db.query<RetentionRow>(
    `with waiting as (
       select what, days from history_retention where next_days is not null for update
     )
     update history_retention r
        set days = r.next_days, next_days = null, next_at = null
       from waiting w
      where w.what = r.what
     returning r.what, w.days, r.days as "nextDays", null::float8 as "nextTs"`,
  );
  return rows;
}

/**
 * Estimates what is older than `toDays`: chunks on TimescaleDB, and rows by the daily counts, because no index finds
 * rows by time alone. It does not include what removed devices and accounts sent.
 */
export async function estimateLoss(
  sql: Sql,
  { what, toDays, nowTs }: { what: Kept; toDays: number; nowTs: WallMs },
): Promise<Loss> {
  // The database's own clock has fractions of milliseconds.
  const beforeTs = Math.floor(nowTs - toDays * dayMs);
  const { rows } = await sql.query<{ rows: number }>(
    `select coalesce(sum(${what}), 0)::bigint as rows
       from account_activity
      where day < (ms_to_timestamp($1) at time zone 'UTC')::date`,
    [beforeTs],
  );
  const isPlain = (await readHistoryKind(sql)) === 'plain';
  const relations = what === 'events' ? ['event', 'event_sense'] : ['measurement'];
  const chunks = isPlain
    ? []
    : await Promise.all(relations.map((relation) => listOldChunks(sql, relation, beforeTs)));
  return { rows: rows[0]?.rows ?? 0, chunks: chunks.flat().length };
}

/** The ends, in ms, of the chunks that lie before that time, oldest first. */
async function listOldChunks(sql: Sql, relation: string, beforeTs: number): Promise<number[]> {
  const { rows } = await sql.query<{ endTs: number }>(
    `select c.range_end as "endTs"
       from timescaledb_information.chunks c
       left join timescaledb_information.continuous_aggregates a
         on a.materialization_hypertable_schema = c.hypertable_schema
        and a.materialization_hypertable_name = c.hypertable_name
      where coalesce(a.view_schema, c.hypertable_schema) = current_schema
        and coalesce(a.view_name, c.hypertable_name) = $1
        and c.range_end <= ms_to_timestamp($2)
      order by c.range_end`,
    [relation, beforeTs],
  );
  return rows.map(({ endTs }) => endTs);
}

async function isEmpty(sql: Sql): Promise<boolean> {
  const { rows } = await sql.query<{ empty: boolean }>(
    `select not exists (select from measurement) and not exists (select from event) as empty`,
  );
  return rows[0]?.empty === true;
}

async function saveRetention(
  sql: Sql,
  { what, days, nextDays, nextTs }: RetentionRow,
): Promise<void> {
  await sql.query(
    `insert into history_retention (what, days, next_days, next_at)
     values ($1, $2, $3, ms_to_timestamp($4))
     on conflict (what) do update
        set days = excluded.days, next_days = excluded.next_days, next_at = excluded.next_at`,
    [what, days, nextDays, nextTs],
  );
}

/** `timescaledb`: hypertables with columnstore and hourly aggregate. `plain`: ordinary tables. */
export type HistoryKind = 'timescaledb' | 'plain';

/** Decided when the database was migrated. An extension that is installed later does not change it. */
export async function readHistoryKind(sql: Sql): Promise<HistoryKind> {
  const { rows } = await sql.query<{ found: boolean }>(
    `select to_regclass('measurement_hour') is not null as found`,
  );
  return rows[0]?.found === true ? 'timescaledb' : 'plain';
}

/** The tables of the history, each with the columns before `ts` in its key. */
export const historyTables = [
  { name: 'measurement', key: ['series_id'] },
  { name: 'event', key: ['device_id', 'type'] },
  { name: 'event_sense', key: ['device_id', 's_id'] },
] as const;
type HistoryTable = (typeof historyTables)[number];

type PruneOptions = {
  /** Infinity days: everything is kept. */
  retention: Retention;
  nowTs: WallMs;
  /** Stops between two batches. */
  signal?: AbortSignal;
  batchRows?: number;
};

/** The newest events and alarm changes are kept this long for streams that resume. */
export const feedMs = 24 * 3_600_000;

/** The key of an advisory lock. */
const pruneLock = 7203;

/**
 * Deletes rows that are older than the retention, one batch per transaction. On TimescaleDB it deletes only rows of
 * the streams' feeds and drops whole chunks of the rest, one per transaction. Returns the number of deleted rows.
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

/** The tables that streams read. */
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
 * Drops the chunks that are wholly older than the retention. `drop_history_chunks` runs with the owner's rights and
 * waits two seconds for its locks. If a chunk is locked, by a long export or otherwise, its table waits for the next
 * run; the other tables continue.
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
      if (!(await claimRun(tx))) return;
      await tx.query('select drop_history_chunks($1::regclass, ms_to_timestamp($2))', [
        relation,
        endTs,
      ]);
    });
  }
}

/** An earlier version that started beside this one may have created a policy, which deletes by an unchecked clock. */
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
async function claimRun(tx: Sql): Promise<boolean> {
  const { rows } = await tx.query<{ held: boolean }>(
    'select pg_try_advisory_xact_lock($1) as held',
    [pruneLock],
  );
  return rows[0]?.held === true;
}

/** Values of a key's columns before `ts`, which select one range of the index. */
type Stretch = (number | string)[];

/** Every key comes after these. */
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
 * No index covers time alone, because it would slow down every insert. So this walks the key range by range: one
 * look-up finds the next range, however many rows the previous one has.
 */
async function pruneBatch(
  db: Database,
  { name, key }: HistoryTable,
  after: Stretch,
  beforeTs: number,
  batchRows: number,
): Promise<Batch> {
  return db.transaction(async (tx) => {
    if (!(await claimRun(tx))) return { deleted: 0, last: null };
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
