import type { Database } from '../db/database.ts';
import { kindOf } from '../db/errors.ts';
import { purgeLock } from '../db/locks.ts';
import type { Sql } from '../db/sql.ts';
import type { MonotonicClock } from '../lib/clock-readings.ts';
import { pause } from '../lib/wait.ts';
import { historyTables, readHistoryKind } from './retention.ts';

/** Devices that are cleared together, and accounts that get a share of one round. */
const devicesAtOnce = 50;
const accountsAtOnce = 20;
/** Devices of a removed account that one transaction detaches from ingest. */
const detachedAtOnce = 100;

type ClearingDeps = {
  db: Database;
  monotonicClock: MonotonicClock;
  /** Detaches devices of a removed account from it, as removing the devices does. Returns how many there were. */
  detach: (accountId: number, limit: number) => Promise<number>;
  /** Deletes the history of devices; false if the step's share was used up first. */
  purge?: typeof purgeDevices;
  /** Called with failures. The next call makes up for them. */
  onError: (error: unknown) => void;
};

type Clearing = {
  /** There is something to clear. If clearing is under way, it runs once more afterwards. */
  start(): void;
  /**
   * Clears what removals have left. One process at a time does; the others leave it to that one. Rejects if all that
   * is left failed.
   */
  resume(signal?: AbortSignal): Promise<void>;
  /** Resolves when nothing is being cleared in this process. */
  idle(): Promise<void>;
  /** Stops clearing, and waits for what is under way. The next process continues. */
  close(): Promise<void>;
};

/**
 * Deletes what belonged to removed devices and accounts, some thousand rows per transaction. Their own rows, which
 * nobody sees, go last, so if the process is killed, the next one, in any process, continues. Accounts share the work
 * fairly: one with millions of rows delays the others by one step at most.
 */
export function createClearing(deps: ClearingDeps): Clearing {
  const { db, monotonicClock, detach, purge = purgeDevices, onError } = deps;
  const closing = new AbortController();
  let clearing: Promise<void> | null = null;
  let isWanted = false;

  function start(): void {
    isWanted = true;
    clearing ??= clearWanted()
      .catch(onError)
      .finally(() => (clearing = null));
  }

  async function clearWanted(): Promise<void> {
    while (isWanted && !closing.signal.aborted) {
      isWanted = false;
      await resume(closing.signal);
    }
  }

  async function resume(signal: AbortSignal = new AbortController().signal): Promise<void> {
    while (!signal.aborted && (await clearRound(signal)));
  }

  /** False if nothing is left, or another process is clearing. */
  async function clearRound(signal: AbortSignal): Promise<boolean> {
    // The rows go over other connections, and this transaction has no snapshot that would hold back vacuum.
    return db.transaction(async (tx) => {
      const { rows } = await tx.query<{ held: boolean }>(
        'select pg_try_advisory_xact_lock($1) as held',
        [purgeLock],
      );
      if (rows[0]?.held !== true) return false;
      const lots = await listRemovedDevices(tx);
      const accountIds = await listRemovedAccounts(tx);
      return runSteps(
        [
          ...lots.map((lot) => (step: ClearingStep) => clearDevices(lot, step)),
          ...accountIds.map((accountId) => (step: ClearingStep) => clearAccount(accountId, step)),
        ],
        signal,
      );
    });
  }

  /** Returns whether anything was done. A failure delays nothing else. If everything failed, throws the first error. */
  async function runSteps(
    steps: ((step: ClearingStep) => Promise<boolean>)[],
    signal: AbortSignal,
  ): Promise<boolean> {
    const errors: unknown[] = [];
    let isSomeDone = false;
    for (const run of steps) {
      if (signal.aborted) return false;
      const step = new ClearingStep(monotonicClock, signal);
      try {
        if ((await run(step)) || step.isBegun) isSomeDone = true;
      } catch (error) {
        errors.push(error);
        if (kindOf(error) === 'unavailable') break;
      }
    }
    if (errors.length > 0 && !isSomeDone) throw errors[0];
    for (const error of errors) onError(error);
    return isSomeDone;
  }

  /** True if nothing of them is left. */
  async function clearDevices(removed: RemovedDevices, step: ClearingStep): Promise<boolean> {
    const { deviceIds } = removed;
    for (const rows of deviceRows) if (!(await clearRows(db, rows, deviceIds, step))) return false;
    if (!(await purge(db, removed, step))) return false;
    await db.transaction(async (tx) => {
      await tx.query('delete from device where id = any($1::bigint[]) and account_id is null', [
        deviceIds,
      ]);
      // Afterwards, because the trigger of the table `device` has noted them again.
      await tx.query('delete from removed_device where device_id = any($1::bigint[])', [deviceIds]);
    });
    return true;
  }

  /** True if nothing of it is left. */
  async function clearAccount(accountId: number, step: ClearingStep): Promise<boolean> {
    const owners = [accountId];
    for (const rows of personalRows) if (!(await clearRows(db, rows, owners, step))) return false;
    const { isLast } = await step.piece((limit) => detach(accountId, limit), detachedAtOnce);
    // They are cleared like all removed devices. The account continues once none is left.
    if (!isLast || (await hasDevices(db, accountId))) return false;
    for (const rows of accountRows) if (!(await clearRows(db, rows, owners, step))) return false;
    await db.query('delete from account where id = $1 and removed_at is not null', [accountId]);
    return true;
  }

  return {
    start,
    resume,
    async idle() {
      await clearing;
    },
    async close() {
      closing.abort();
      await clearing;
    },
  };
}

function clearRows(
  db: Sql,
  rows: OwnedRows,
  owners: number[],
  step: ClearingStep,
): Promise<boolean> {
  const text = deletePieceOf(rows);
  return step.deleteAll((limit) => db.query(text, [owners, limit]));
}

/** Some devices of some accounts, chosen at random, so that those that fail or have much left do not hide others. */
async function listRemovedDevices(tx: Sql): Promise<RemovedDevices[]> {
  const { rows } = await tx.query<RemovedDevices>(
    `select account_id as "accountId", json_agg(device_id) as "deviceIds"
       from (select account_id, device_id,
                    row_number() over (partition by account_id order by device_id) as nth
               from removed_device) as r
      where nth <= $1
      group by account_id
      order by random()
      limit $2`,
    [devicesAtOnce, accountsAtOnce],
  );
  return rows;
}

async function listRemovedAccounts(tx: Sql): Promise<number[]> {
  const { rows } = await tx.query<{ id: number }>(
    'select id from account where removed_at is not null order by random() limit $1',
    [accountsAtOnce],
  );
  return rows.map(({ id }) => id);
}

async function hasDevices(db: Sql, accountId: number): Promise<boolean> {
  const { rows } = await db.query<{ has: boolean }>(
    `select exists (select from device where account_id = $1)
         or exists (select from removed_device where account_id = $1) as has`,
    [accountId],
  );
  return rows[0]?.has === true;
}

/** Whether nothing of a removed account is left. */
export async function isAccountCleared(db: Sql, accountId: number): Promise<boolean> {
  const { rows } = await db.query('select from account where id = $1', [accountId]);
  return rows.length === 0;
}

/** Rows of a feed that one statement looks at. */
const feedRows = 20_000;

/**
 * Deletes all history of removed devices, also from compressed chunks and from the hourly aggregate. A transaction
 * deletes from one chunk, or some thousand rows, so its locks are short. Returns false if the step's share was used
 * up first; the caller then calls again, as it does after an interruption. Nothing may be stored for these devices
 * any more. `accountId`: whose they were; if unknown, the feeds keep their rows until they are a day old.
 */
async function purgeDevices(
  db: Database,
  { accountId, deviceIds }: RemovedDevices,
  step: ClearingStep,
): Promise<boolean> {
  const kind = await readHistoryKind(db);
  const owners = { device_id: deviceIds, series_id: await listSeriesIds(db, deviceIds) };
  const purgeRows = kind === 'plain' ? purgeTable : purgeChunks;
  for (const { name, key } of historyTables)
    if (!(await purgeRows(db, name, { column: key[0], owners: owners[key[0]] }, step)))
      return false;
  if (kind === 'timescaledb') await purgeHours(db, owners.series_id);
  if (accountId !== null) {
    await purgeFeed(db, 'event_feed', { accountId, deviceIds }, step);
    await purgeFeed(db, 'alarm_change', { accountId, deviceIds }, step);
  }
  // Last, because measurements name only their series: without it the rest could not be found.
  return purgeTable(db, 'series', { column: 'device_id', owners: deviceIds }, step);
}

async function listSeriesIds(db: Database, deviceIds: number[]): Promise<number[]> {
  const { rows } = await db.query<{ id: number }>(
    'select id from series where device_id = any($1::bigint[])',
    [deviceIds],
  );
  return rows.map(({ id }) => id);
}

type Owners = { column: 'device_id' | 'series_id'; owners: number[] };

function purgeTable(
  db: Database,
  table: string,
  { column, owners }: Owners,
  step: ClearingStep,
): Promise<boolean> {
  const text = deletePieceOf({ table, owner: column });
  return step.deleteAll((limit) => db.query(text, [owners, limit]));
}

async function purgeChunks(
  db: Database,
  table: string,
  { column, owners }: Owners,
  step: ClearingStep,
): Promise<boolean> {
  const { rows } = await db.query<{ range_start: number; range_end: number }>(
    `select range_start, range_end
       from timescaledb_information.chunks
      where hypertable_schema = current_schema and hypertable_name = $1
      order by range_start`,
    [table],
  );
  const purge = async (from: number, to: number) => {
    const { rowCount } = await db.query(
      `delete from ${table}
        where ${column} = any($1::bigint[])
          and ts >= ms_to_timestamp($2) and ts < ms_to_timestamp($3)`,
      [owners, from, to],
    );
    return rowCount ?? 0;
  };
  for (const { range_start, range_end } of rows) {
    if (step.isOver) return false;
    await step.spend(() => inHalves(purge, range_start, range_end));
  }
  return true;
}

/**
 * Deletes the devices' rows from a feed. A feed has an index by account only, so this walks all of the account's
 * rows. It keeps changes that report an alarm as removed with its device: they say nothing of the device, and streams
 * still have to send them.
 */
async function purgeFeed(
  db: Database,
  feed: 'event_feed' | 'alarm_change',
  { accountId, deviceIds }: { accountId: number; deviceIds: number[] },
  step: ClearingStep,
): Promise<void> {
  const isTold = feed === 'alarm_change' ? `and body ->> 'change' <> 'removed'` : '';
  let last = { xact: '0', seq: 0 };
  for (let count = feedRows; count === feedRows;) {
    const purgeOnce = async (): Promise<number> => {
      const { rows } = await db.query<{ xact: string; seq: number; count: number }>(
        `with page as materialized (
           select ctid, xact, seq from ${feed}
            where account_id = $1 and (xact, seq) > ($2::xid8, $3::bigint)
            order by xact, seq
            limit ${feedRows}
         ), gone as (
           delete from ${feed}
            where ctid = any(array(select ctid from page))
              and device_id = any($4::bigint[]) ${isTold}
         )
         select xact::text, seq, (select count(*) from page) as count
           from page order by xact desc, seq desc limit 1`,
        [accountId, last.xact, last.seq, deviceIds],
      );
      last = rows[0] ?? last;
      return rows[0]?.count ?? 0;
    };
    count = await step.spend(purgeOnce);
  }
}

/** In ms. Shorter ranges are not halved further: something else is wrong. */
const shortest = 60_000;

/** Purges a range; in two halves if the statement times out. Returns how many rows there were. */
async function inHalves(
  purge: (from: number, to: number) => Promise<number>,
  from: number,
  to: number,
): Promise<number> {
  try {
    return await purge(from, to);
  } catch (error) {
    if (kindOf(error) !== 'cancelled' || to - from < shortest) throw error;
    const middle = Math.floor((from + to) / 2);
    return (await inHalves(purge, from, middle)) + (await inHalves(purge, middle, to));
  }
}

/** Until its next refresh, the aggregate would still return deleted rows. */
async function purgeHours(db: Database, seriesIds: number[]): Promise<void> {
  const { rows } = await db.query<{ relation: string }>(
    `select format('%I.%I', materialization_hypertable_schema, materialization_hypertable_name)
              as relation
       from timescaledb_information.continuous_aggregates
      where view_schema = current_schema and view_name = 'measurement_hour'`,
  );
  for (const { relation } of rows) {
    await db.query(`delete from ${relation} where series_id = any($1::bigint[])`, [seriesIds]);
  }
}

/** Rows that belong to a device or an account and can be many. They go some thousand per transaction. */
type OwnedRows = {
  table: string;
  /** The column that names the owner. An index begins with it. */
  owner: 'device_id' | 'account_id' | 'series_id';
  /** A condition on index columns before the owner's, with all values that they have. */
  before?: string;
};

/** Removed devices of one account; null: an earlier version removed them, and whose they were is unknown. */
type RemovedDevices = { accountId: number | null; deviceIds: number[] };

/** The most rows that one transaction deletes. */
const pieceRows = 5_000;

/** Deletes at most `limit` rows of these owners: `$1` are the owners, `$2` the limit. */
function deletePieceOf({ table, owner, before }: OwnedRows): string {
  const where = `${before ? `${before} and ` : ''}${owner} = any($1::bigint[])`;
  return `delete from ${table}
           where ctid = any(array(select ctid from ${table} where ${where} limit $2))`;
}

/** Full pieces per step. */
const piecesOfStep = 20;
/** It pauses for as long as a piece took, but no longer than this, so that others get to the database. */
const longestRestMs = 250;

/** How much is deleted before other accounts' removals continue. */
class ClearingStep {
  readonly #monotonicClock: MonotonicClock;
  readonly #signal: AbortSignal;
  #left = piecesOfStep;
  /** The fraction of a full piece to attempt; halved after a piece that took longer than a statement may. */
  #share = 1;

  constructor(monotonicClock: MonotonicClock, signal: AbortSignal) {
    this.#monotonicClock = monotonicClock;
    this.#signal = signal;
  }

  get isOver(): boolean {
    return this.#left <= 0 || this.#signal.aborted;
  }

  /** Whether anything was done in it. */
  get isBegun(): boolean {
    return this.#left < piecesOfStep;
  }

  /** Deletes piece after piece. True if nothing is left; false if the step's share was used up first. */
  async deleteAll(deleteSome: (limit: number) => Promise<{ rowCount: number | null }>) {
    const countDeleted = async (limit: number) => (await deleteSome(limit)).rowCount ?? 0;
    while (!this.isOver) if ((await this.piece(countDeleted, pieceRows)).isLast) return true;
    return false;
  }

  /** Does a piece of at most `most` items, fewer if that takes too long. `isLast`: fewer were left. */
  async piece(
    work: (limit: number) => Promise<number>,
    most: number,
  ): Promise<{ count: number; isLast: boolean }> {
    for (;;) {
      const limit = Math.max(1, Math.floor(most * this.#share));
      try {
        const count = await this.spend(() => work(limit));
        return { count, isLast: count < limit };
      } catch (error) {
        if (kindOf(error) !== 'cancelled' || limit === 1) throw error;
        this.#share /= 2;
      }
    }
  }

  /** Runs work that returns how much it did. If it did nothing, it costs nothing. */
  async spend(work: () => Promise<number>): Promise<number> {
    const startedMs = this.#monotonicClock();
    const count = await work();
    if (count === 0) return count;
    this.#left -= 1;
    await pause(Math.min(longestRestMs, this.#monotonicClock() - startedMs), this.#signal);
    return count;
  }
}

const ofDevice = (table: string): OwnedRows => ({ table, owner: 'device_id' });
const ofAccount = (table: string): OwnedRows => ({ table, owner: 'account_id' });

/**
 * Rows of a device that can be many, in the order of deletion: first those that name people (telephone numbers, push
 * tokens) or wait to be sent to them. The history follows (`purgeDevices`), then the device's row, which cascades to
 * tables with one or a few rows per device. `test/history/cascades.test.ts` lists all tables with the reason.
 */
const deviceRows: readonly OwnedRows[] = [
  ofDevice('message_bundle'),
  ofDevice('notification'),
  ofDevice('alarm'),
  ofDevice('alarm_snooze'),
  ofDevice('rejection'),
  ofDevice('device_profile'),
  ofDevice('device_profile_span'),
  ofDevice('former_version'),
  ofDevice('backtest_lines'),
  ofDevice('backtest_device'),
  ofDevice('device_input'),
  ofDevice('late_arrival'),
  ofDevice('refused_login'),
  ofDevice('command'),
];

const kindsOfAccount = `kind in ('account', 'recipient', 'confirmations', 'webhook', 'sms')`;

/** Rows of an account that name people. `forgetPersons` deletes what fits into one transaction; the rest goes first. */
const personalRows: readonly OwnedRows[] = [
  ofAccount('contact'),
  ofAccount('push_token'),
  ofAccount('email_change'),
  ofAccount('account_mail'),
  ofAccount('recipient_turn'),
  ofAccount('message_bundle'),
  ofAccount('notification'),
  ofAccount('alarm'),
  ofAccount('purpose'),
  ofAccount('former_profile_content'),
  ofAccount('session'),
  ofAccount('api_key'),
  ofAccount('stream_ticket'),
  ofAccount('idempotency_key'),
  ofAccount('account_audit'),
  ofAccount('refused_login'),
  ofAccount('removed_uuid'),
  ofAccount('backtest_lines'),
  ofAccount('backtest_device'),
  ofAccount('job'),
  { ...ofAccount('message_count'), before: kindsOfAccount },
];

/** Other rows of an account that can be many. They go when none of its devices is left. */
const accountRows: readonly OwnedRows[] = [
  ofAccount('profile'),
  ofAccount('profile_content'),
  ofAccount('event_meaning'),
  ofAccount('account_event'),
  ofAccount('account_activity'),
  ofAccount('event_feed'),
  ofAccount('alarm_change'),
];

/** All that is deleted in pieces; `test/history/cascades.test.ts` compares it with the foreign keys. */
export const ownedRows = {
  ofDevices: deviceRows,
  ofAccounts: [...personalRows, ...accountRows],
} satisfies Record<string, readonly OwnedRows[]>;

/**
 * Deletes what of an account names people, in the transaction that marks it as removed: at most `pieceRows` of each
 * table. The first pieces of clearing delete the rest.
 */
export async function forgetPersons(tx: Sql, accountId: number): Promise<void> {
  for (const rows of personalRows) await tx.query(deletePieceOf(rows), [[accountId], pieceRows]);
  // Actions contain telephone numbers. The rows stay, because roll-outs name them, and roll-outs can be many.
  await tx.query(
    `update profile_content set purposes = '[]'
      where id = any(array(select id from profile_content where account_id = $1 limit $2))`,
    [accountId, pieceRows],
  );
}
