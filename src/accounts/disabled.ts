import { insertEntry, operator } from '../audit/audit.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { lockAccount } from './account.ts';

/** The accounts that were disabled or removed, as this process knows them: up to half a second late. */
export type DisabledAccounts = {
  has(accountId: number): boolean;
  /** An account was removed just now: it counts as disabled from here on. */
  note(accountId: number): void;
  /** Calls the listener for each account once it is known to be disabled. Returns the function that unsubscribes. */
  onDisabled(listener: (accountId: number) => void): () => void;
  close(): Promise<void>;
};

type DisabledAccountsOptions = {
  db: Sql;
  intervalMs?: number;
  /** The database is unreachable; called once until it answers again. The known accounts stay. */
  onError: (error: unknown) => void;
};

/**
 * Polls the database: without Redis, the operator's command has no other way to reach every process. Few accounts are
 * disabled, so each poll reads all of them.
 */
export async function startDisabledAccounts(
  options: DisabledAccountsOptions,
): Promise<DisabledAccounts> {
  const { db, intervalMs = 500, onError } = options;
  const listeners = new Set<(accountId: number) => void>();
  let disabled = new Set(await listDisabledIds(db));
  /** Noted since, with the number of the newest poll at that time: that poll and older ones may not have seen it. */
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
      // Wrapped, so that the same function can be added twice.
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

/** False if nothing changed. `disabledTs` in ms; null enables the account again. */
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
 * Disables an account: its sessions end with the commit, its devices disconnect within a second of it, when the
 * processes have noticed. Nothing is deleted. While the session store is unreachable nothing happens (`unavailable`).
 * False if it was disabled before; sessions that may have begun meanwhile end all the same.
 */
export async function disableAccount(
  { db, revokeSessions }: DisableAccountDeps,
  accountId: number,
  ts: number,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    // A login under way waits, and then finds its account disabled.
    await lockAccount(tx, accountId);
    const isNew = await setDisabled(tx, accountId, ts);
    if (isNew) await insertEntry(tx, accountId, { kind: 'disabled', actor: operator, ts });
    await revokeSessions(accountId);
    return isNew;
  });
}

/** Enables the account again; its devices keep their tokens. False if it was not disabled. */
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
