import { insertEntry, operator } from '../audit/audit.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { lockAccount } from './account.ts';

/** The accounts that the operator has shut out, or that were removed, as this process knows them: half a second late. */
export type DisabledAccounts = {
  has(accountId: number): boolean;
  /** An account was removed just now: it counts from here on. */
  note(accountId: number): void;
  /** Told of each account once it is known to be disabled. Gives what ends that. */
  onDisabled(listener: (accountId: number) => void): () => void;
  close(): Promise<void>;
};

type DisabledAccountsOptions = {
  db: Sql;
  intervalMs?: number;
  /** The database is away; told once until it answers again. What was known stays. */
  onError: (error: unknown) => void;
};

/**
 * Polls the database: without Redis the operator's command has no other way to reach every process.
 * Disabled accounts are few, so all of them are read at once.
 */
export async function startDisabledAccounts(
  options: DisabledAccountsOptions,
): Promise<DisabledAccounts> {
  const { db, intervalMs = 500, onError } = options;
  const listeners = new Set<(accountId: number) => void>();
  let disabled = new Set(await listDisabledIds(db));
  /** Noted since, by the number of the look that was the newest then: an older one may not have seen it. */
  const noted = new Map<number, number>();
  let looks = 0;
  let isAway = false;
  let isReading = false;
  let reading = Promise.resolve();

  async function read(): Promise<void> {
    const look = (looks += 1);
    const before = disabled;
    const found = await listDisabledIds(db);
    for (const [accountId, newest] of noted) if (newest < look) noted.delete(accountId);
    disabled = new Set([...found, ...noted.keys()]);
    isAway = false;
    for (const accountId of disabled) if (!before.has(accountId)) tell(accountId);
  }

  function tell(accountId: number): void {
    for (const listener of listeners) listener(accountId);
  }

  function note(accountId: number): void {
    noted.set(accountId, looks);
    if (disabled.has(accountId)) return;
    disabled.add(accountId);
    tell(accountId);
  }

  function look(): void {
    if (isReading) return;
    isReading = true;
    reading = read()
      .catch((error: unknown) => {
        if (!isAway) onError(error);
        isAway = true;
      })
      .finally(() => (isReading = false));
  }

  const timer = setInterval(look, intervalMs);
  timer.unref();
  return {
    has: (accountId) => disabled.has(accountId),
    note,
    onDisabled(listener) {
      // Wrapped, so that the same function twice is two listeners.
      const own = (accountId: number) => listener(accountId);
      listeners.add(own);
      return () => void listeners.delete(own);
    },
    async close() {
      clearInterval(timer);
      await reading;
    },
  };
}

async function listDisabledIds(sql: Sql): Promise<number[]> {
  const { rows } = await sql.query<{ id: number }>({
    name: 'disabled-accounts',
    text: 'select id from account where disabled_at is not null',
    values: [],
  });
  return rows.map(({ id }) => id);
}

/** False when it was so before. `disabledTs` in ms; null lets the account in again. */
async function setDisabled(
  sql: Sql,
  accountId: number,
  disabledTs: number | null,
): Promise<boolean> {
  const { rowCount } = await sql.query(
    `
      update account
      set disabled_at = ms_to_timestamp($2)
      where id = $1 and (disabled_at is null) <> ($2::bigint is null)
    `,
    [accountId, disabledTs],
  );
  return rowCount === 1;
}

type DisableAccountDeps = {
  db: Database;
  revokeSessions: (accountId: number) => Promise<void>;
};

/**
 * Shuts an account out: its sessions end with the commit, its devices within a second of it, when the
 * processes have seen it. Nothing is deleted. With the session store away nothing happens
 * (`unavailable`). False when it was disabled before; what may have begun meanwhile ends all the same.
 */
export async function disableAccount(
  { db, revokeSessions }: DisableAccountDeps,
  accountId: number,
  ts: number,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    // A login that is under way waits, and then finds its account disabled.
    await lockAccount(tx, accountId);
    const isNew = await setDisabled(tx, accountId, ts);
    if (isNew) await insertEntry(tx, accountId, { kind: 'disabled', actor: operator, ts });
    await revokeSessions(accountId);
    return isNew;
  });
}

/** Lets the account in again: its devices with the tokens that they have. False when it was not disabled. */
export async function enableAccount(
  { db }: Pick<DisableAccountDeps, 'db'>,
  accountId: number,
  ts: number,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    const isNew = await setDisabled(tx, accountId, null);
    if (isNew) await insertEntry(tx, accountId, { kind: 'enabled', actor: operator, ts });
    return isNew;
  });
}
