import { stateOf, states } from '../db/errors.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError, type Problem } from '../errors.ts';
import { FairBudget } from '../lib/fair-budget.ts';
import type { QuotaName, QuotaSettings } from './settings.ts';

/** A quota's limit for one account, as SQL: the account's own or, without one, the configuration's (`otherwise`). */
export function limitOf(account: string, quota: QuotaName, otherwise: string): string {
  return `coalesce(
    (select value from account_quota where account_id = ${account} and quota = '${quota}'),
    ${otherwise}::bigint)`;
}

/** The current day, as registrations count it. */
export const today = `(now() at time zone 'UTC')::date`;

/** How much of its quotas an account uses, and which limits are its own. */
export type Usage = {
  used: Partial<Record<QuotaName, number>>;
  overrides: Partial<Record<QuotaName, number>>;
};

/** Messages of one kind that the account has sent today. */
const sent = (kind: 'account' | 'sms' | 'webhook') => `
  coalesce((select used from message_count
             where kind = '${kind}' and account_id = a.id and key = '' and day >= ${today}), 0)`;

/** Null if the account is gone. `connections`: connected devices, at the connector that has most. */
export async function findUsage(sql: Sql, accountId: number): Promise<Usage | null> {
  const { rows } = await sql.query<Usage>(
    `
      select json_build_object(
               'devices', coalesce(u.devices, 0),
               'devicesPerDay',
                 case when u.registrations_day = ${today} then u.registrations else 0 end,
               'purposes', coalesce(u.purposes, 0),
               'purposeBytes', coalesce(u.purpose_bytes, 0),
               'profiles', coalesce(u.profiles, 0),
               'profileBytesTotal', coalesce(u.profile_bytes, 0),
               'connections',
                 (select coalesce(max(c.connected), 0)
                    from (select count(*) as connected
                            from device d join presence p on p.device_id = d.id
                           where d.account_id = a.id and p.connected
                           group by p.connector_id) as c),
               'contacts', (select count(*) from contact where account_id = a.id),
               'pushTokens', (select count(*) from push_token where account_id = a.id),
               'keys', (select count(*) from api_key where account_id = a.id),
               'jobs', (select count(*) from job where account_id = a.id and state = 'running'),
               'backtests', (select count(*) from backtest where account_id = a.id),
               'backtestValuesPerDay',
                 coalesce(case when u.played_day = ${today} then u.played end, 0),
               'idempotencyKeys',
                 (select count(*) from idempotency_key where account_id = a.id),
               'messagesPerDay', ${sent('account')},
               'webhooksPerDay', ${sent('webhook')},
               'smsPerDay', ${sent('sms')},
               'commandsPerDay',
                 case when u.commands_day = ${today} then u.commands else 0 end) as used,
             coalesce(
               (select json_object_agg(quota, value) from account_quota where account_id = a.id),
               '{}') as overrides
        from account a
        left join account_usage u on u.account_id = a.id
       where a.id = $1 and a.removed_at is null`,
    [accountId],
  );
  return rows[0] ?? null;
}

/**
 * Locks the account's counters until the transaction ends; throws `unauthenticated` if the account is gone. Call it
 * before anything else of the account is locked (its own row, too), and before `ingestLock`: that rules out deadlocks,
 * and no other account waits for this one.
 */
export async function lockUsage(tx: Sql, accountId: number): Promise<void> {
  const { rowCount } = await tx
    .query(
      `
        insert into account_usage (account_id)
        select id from account where id = $1 and removed_at is null
        on conflict (account_id) do update set devices = account_usage.devices
         where not account_usage.is_closed`,
      [accountId],
    )
    .catch(throwGone);
  if (rowCount === 0) throw accountGone();
}

export function accountGone(): DomainError {
  return new DomainError('unauthenticated', 'The account no longer exists.');
}

/** foreign_key_violation: the account was removed while we waited to count for it. */
export function throwGone(error: unknown): never {
  if (stateOf(error) === states.foreignKeyViolation) throw accountGone();
  throw error;
}

/** All accounts with limits of their own, and these limits. */
async function listOverrides(
  sql: Sql,
): Promise<{ accountId: number; email: string; its: Usage['overrides'] }[]> {
  const { rows } = await sql.query<{ accountId: number; email: string; its: Usage['overrides'] }>(
    `
      select a.id as "accountId", a.email, json_object_agg(q.quota, q.value) as its
        from account_quota q
        join account a on a.id = q.account_id
       where a.removed_at is null
       group by a.id`,
  );
  return rows;
}

/** Gives the account its own limit. */
export async function saveOverride(
  sql: Sql,
  accountId: number,
  quota: QuotaName,
  value: number,
): Promise<void> {
  await sql.query(
    `
      insert into account_quota (account_id, quota, value) values ($1, $2, $3)
      on conflict (account_id, quota) do update set value = excluded.value`,
    [accountId, quota, value],
  );
}

/** Restores the configuration's limit for the account. */
export async function removeOverride(sql: Sql, accountId: number, quota: QuotaName): Promise<void> {
  await sql.query('delete from account_quota where account_id = $1 and quota = $2', [
    accountId,
    quota,
  ]);
}

type Exceeded = { quota: QuotaName; limit: number; used: number };

/** The error if the account would exceed its quota. */
export function quotaExceeded({ quota, limit, used }: Exceeded): DomainError {
  const message = `This exceeds the quota ${quota}: ${used} of ${limit} are in use.`;
  return new DomainError('quota-exceeded', message, { exceeded: { quota, limit, used } });
}

/** Runs the work of one account when a place is free; accounts do not wait for each other. */
type FairRunner = <T>(accountId: number, work: () => Promise<T>) => Promise<T>;

/**
 * Whatever adds to an account waits for the account's row in the database. It waits here instead, where it takes no
 * connection that others need. `parallel` may run at a time, so that one always waits for the row.
 */
export function createFairRunner(parallel: number): FairRunner {
  const budget = new FairBudget({ most: Infinity, mostOfKey: () => parallel });
  return (accountId, work) => budget.run(`${accountId}`, work);
}

/** The quotas of an account: its own limits, and the configuration's for the rest. */
export type LimitsOf = (accountId: number) => QuotaSettings;

/** The limit of one quota. */
export type LimitOf = (accountId: number) => number | Promise<number>;

export type QuotaOverrides = {
  limitsOf: LimitsOf;
  /** The quota `loginsPerAccount` for this normalized address; needed before the account is looked up. */
  loginsOf: (email: string) => number;
  close(): Promise<void>;
};

type OverrideOptions = {
  db: Sql;
  quotas: QuotaSettings;
  /** How soon this process notices an operator's change. */
  intervalMs?: number;
  onError: (error: unknown) => void;
};

/**
 * Caches which accounts have limits of their own, because every request and message asks. Only accounts that the
 * operator made an exception for have them: few enough to read all at once.
 */
export async function startOverrides(options: OverrideOptions): Promise<QuotaOverrides> {
  const { db, quotas, intervalMs = 5_000, onError } = options;
  let own = new Map<number, QuotaSettings>();
  let logins = new Map<string, number>();
  const read = async () => {
    const overrides = await listOverrides(db);
    own = new Map(overrides.map(({ accountId, its }) => [accountId, { ...quotas, ...its }]));
    logins = new Map(
      overrides.flatMap(({ email, its: { loginsPerAccount: limit } }) =>
        limit === undefined ? [] : [[email, limit]],
      ),
    );
  };
  await read();
  let reading = Promise.resolve();
  const timer = setInterval(() => void (reading = reading.then(read).catch(onError)), intervalMs);
  timer.unref();
  return {
    limitsOf: (accountId) => own.get(accountId) ?? quotas,
    loginsOf: (email) => logins.get(email) ?? quotas.loginsPerAccount,
    async close() {
      clearInterval(timer);
      await reading;
    },
  };
}

// A large invalid array must not cause a larger answer.
const maxProblems = 100;

/** Throws `invalid-input` with everything that is too large, if anything is. */
export function refuseOversized(problems: Problem[]): void {
  if (problems.length === 0) return;
  const message = 'The request contains something larger than allowed.';
  throw new DomainError('invalid-input', message, { problems: problems.slice(0, maxProblems) });
}

type Within = {
  accountId: number;
  quotas: QuotaSettings;
  /** How much it adds to which quotas. */
  adding: Partial<Record<QuotaName, number>>;
};

// Attempts while others take the remaining room, and free it again before we look for the reason.
const maxAttempts = 5;

/**
 * Runs a statement that stores something only within the account's quotas and otherwise returns null. If it returns
 * null, throws the reason: `quota-exceeded`, or `unauthenticated` if the account is gone.
 */
export async function storeWithin<T>(
  sql: Sql,
  { accountId, quotas, adding }: Within,
  store: () => Promise<T | null>,
): Promise<T> {
  for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
    const stored = await store().catch(throwGone);
    if (stored !== null) return stored;
    const refusal = await findRefusal(sql, { accountId, quotas, adding });
    if (refusal) throw refusal;
  }
  throw new DomainError(
    'unavailable',
    'Other requests are using up and freeing the last of a quota right now: try again later.',
  );
}

/** Throws if a quota would be exceeded, before anything is stored. The caller has locked the account's usage. */
export async function refuseBeyond(sql: Sql, within: Within): Promise<void> {
  const refusal = await findRefusal(sql, within);
  if (refusal) throw refusal;
}

/** The reason why something was not stored. The caller has locked the account's usage. */
export async function explainRefusal(sql: Sql, within: Within): Promise<DomainError> {
  const refusal = await findRefusal(sql, within);
  return (
    refusal ?? new DomainError('unavailable', 'Nothing was stored, and no quota explains why.')
  );
}

/** Null if all quotas would allow it by now. */
async function findRefusal(
  sql: Sql,
  { accountId, quotas, adding }: Within,
): Promise<DomainError | null> {
  const usage = await findUsage(sql, accountId);
  if (!usage) return accountGone();
  for (const [name, more] of Object.entries(adding)) {
    const quota = name as QuotaName;
    const limit = usage.overrides[quota] ?? quotas[quota];
    const used = usage.used[quota] ?? 0;
    if (used + more > limit) return quotaExceeded({ quota, limit, used });
  }
  return null;
}
