import type { Database } from '../db/database.ts';
import { kindOf } from '../db/errors.ts';
import { purgeLock } from '../db/locks.ts';
import type { Sql } from '../db/sql.ts';
import type { MonotonicClock } from '../lib/clock.ts';
import { accountRows, deviceRows, personalRows } from './owned-rows.ts';
import { deletePieceOf, Turn, type OwnedRows, type RemovedDevices } from './pieces.ts';
import { purgeDevices } from './purge.ts';

/** Devices that are cleared together, and accounts that have a turn in one round. */
const devicesAtOnce = 50;
const accountsAtOnce = 20;
/** Devices of a removed account that one transaction takes out of ingest. */
const detachedAtOnce = 100;

export type ClearingDeps = {
  db: Database;
  nowMs: MonotonicClock;
  /** Takes devices of a removed account away from it, as a removal of the devices does; gives how many there were. */
  detach: (accountId: number, limit: number) => Promise<number>;
  /** Deletes the history of devices; false where the turn was over before that. */
  purge?: typeof purgeDevices;
  /** Told of what failed; the next call makes up for it. */
  onError: (error: unknown) => void;
};

export type Clearing = {
  /** There is something to clear; where it is being cleared already, once more after that. */
  start(): void;
  /**
   * Clears what removals have left. One process at a time does; others leave it to that one. Rejects where all that
   * is left failed.
   */
  resume(signal?: AbortSignal): Promise<void>;
  /** Resolves when nothing is being cleared here. */
  idle(): Promise<void>;
  /** Clears no more, and waits for what is under way. The next process goes on. */
  close(): Promise<void>;
};

/**
 * Deletes what belonged to removed devices and accounts, in pieces of some thousand rows, a transaction each; their
 * own rows, which nobody sees, last. Whoever is killed in between leaves them to the next, in any process. Removals
 * take turns by account: one with millions of rows holds up no other for longer than a turn.
 */
export function createClearing(deps: ClearingDeps): Clearing {
  const { db, nowMs, detach, purge = purgeDevices, onError } = deps;
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

  /** False where nothing is left, or another process is at it. */
  async function clearRound(signal: AbortSignal): Promise<boolean> {
    // While the rows go over other connections, this transaction has no snapshot that would hold back vacuum.
    return db.transaction(async (tx) => {
      const { rows } = await tx.query<{ held: boolean }>(
        'select pg_try_advisory_xact_lock($1) as held',
        [purgeLock],
      );
      if (rows[0]?.held !== true) return false;
      const lots = await listRemovedDevices(tx);
      const accountIds = await listRemovedAccounts(tx);
      return runTurns(
        [
          ...lots.map((lot) => (turn: Turn) => clearDevices(lot, turn)),
          ...accountIds.map((accountId) => (turn: Turn) => clearAccount(accountId, turn)),
        ],
        signal,
      );
    });
  }

  /** Says whether anything was done. What fails holds up nothing else; where all did, its error is thrown. */
  async function runTurns(
    turns: ((turn: Turn) => Promise<boolean>)[],
    signal: AbortSignal,
  ): Promise<boolean> {
    const errors: unknown[] = [];
    let isSomeDone = false;
    for (const run of turns) {
      if (signal.aborted) return false;
      const turn = new Turn(nowMs, signal);
      try {
        if ((await run(turn)) || turn.isBegun) isSomeDone = true;
      } catch (error) {
        errors.push(error);
        if (kindOf(error) === 'unavailable') break;
      }
    }
    if (errors.length > 0 && !isSomeDone) throw errors[0];
    for (const error of errors) onError(error);
    return isSomeDone;
  }

  /** True when nothing of them is left. */
  async function clearDevices(removed: RemovedDevices, turn: Turn): Promise<boolean> {
    const { deviceIds } = removed;
    for (const rows of deviceRows) if (!(await clearRows(db, rows, deviceIds, turn))) return false;
    if (!(await purge(db, removed, turn))) return false;
    await db.transaction(async (tx) => {
      await tx.query('delete from device where id = any($1::bigint[]) and account_id is null', [
        deviceIds,
      ]);
      // Behind it: the trigger of the table `device` has noted them anew.
      await tx.query('delete from removed_device where device_id = any($1::bigint[])', [deviceIds]);
    });
    return true;
  }

  /** True when nothing of it is left. */
  async function clearAccount(accountId: number, turn: Turn): Promise<boolean> {
    const owners = [accountId];
    for (const rows of personalRows) if (!(await clearRows(db, rows, owners, turn))) return false;
    const { isLast } = await turn.piece((limit) => detach(accountId, limit), detachedAtOnce);
    // They are cleared as all removed devices are, and this goes on when none is left.
    if (!isLast || (await hasDevices(db, accountId))) return false;
    for (const rows of accountRows) if (!(await clearRows(db, rows, owners, turn))) return false;
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

function clearRows(db: Sql, rows: OwnedRows, owners: number[], turn: Turn): Promise<boolean> {
  const text = deletePieceOf(rows);
  return turn.deleteAll((limit) => db.query(text, [owners, limit]));
}

/** Some of each of some accounts. By lot, so that those that fail or have much left do not hide others. */
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
