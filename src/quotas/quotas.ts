import { stateOf, states } from '../db/errors.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError, type Problem } from '../errors.ts';
import { FairBudget } from '../lib/fair-budget.ts';
import type { QuotaName, QuotaSettings } from './settings.ts';

/** A quota's limit for one account, as SQL: its own, or else the configuration's (`otherwise`). */
export function limitOf(account: string, quota: QuotaName, otherwise: string): string {
  return `coalesce(
    (select value from account_quota where account_id = ${account} and quota = '${quota}'),
    ${otherwise}::bigint)`;
}

/** Today, as registrations are counted. */
export const today = `(now() at time zone 'UTC')::date`;

/** What an account has stored, and which quotas are its own. */
export type Usage = {
  used: Partial<Record<QuotaName, number>>;
  overrides: Partial<Record<QuotaName, number>>;
};

/** Messages of one kind that the account has sent today. */
const sent = (kind: 'account' | 'sms' | 'webhook') => `
  coalesce((select used from message_count
             where kind = '${kind}' and account_id = a.id and key = '' and day >= ${today}), 0)`;

/** Null when the account is gone. `connections`: devices that are connected, at the connector that has most. */
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
               'idempotencyKeys',
                 (select count(*) from idempotency_key where account_id = a.id),
               'messagesPerDay', ${sent('account')},
               'webhooksPerDay', ${sent('webhook')},
               'smsPerDay', ${sent('sms')}) as used,
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
 * Keeps everybody else from counting for this account until the transaction ends; `unauthenticated` when
 * it is gone. Before anything else of the account is locked, and before `ingestLock`: nobody waits in a
 * circle then, and no other account for what this one does.
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

/** foreign_key_violation: the account was removed while somebody waited to count for it. */
export function throwGone(error: unknown): never {
  if (stateOf(error) === states.foreignKeyViolation) throw accountGone();
  throw error;
}

/** All accounts that have quotas of their own, with these. */
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

/** The account has a limit of its own from now on. */
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

/** The configuration's limit counts for the account again. */
export async function removeOverride(sql: Sql, accountId: number, quota: QuotaName): Promise<void> {
  await sql.query('delete from account_quota where account_id = $1 and quota = $2', [
    accountId,
    quota,
  ]);
}

type Exceeded = { quota: QuotaName; limit: number; used: number };

/** What is refused because the account would have more than its quota of something. */
export function quotaExceeded({ quota, limit, used }: Exceeded): DomainError {
  const message = `This exceeds the quota ${quota}: ${used} of ${limit} are in use.`;
  return new DomainError('quota-exceeded', message, { exceeded: { quota, limit, used } });
}

/** Runs work of one account when it is its turn; that of others goes on beside it. */
type FairRunner = <T>(accountId: number, work: () => Promise<T>) => Promise<T>;

/**
 * What adds to an account waits for the account's row in the database. It waits here instead, where it
 * holds no connection that others need: `parallel` at a time may, so that the row is never left alone.
 */
export function createFairRunner(parallel: number): FairRunner {
  const budget = new FairBudget({ most: Infinity, mostOfKey: () => parallel });
  return (accountId, work) => budget.run(`${accountId}`, work);
}

/** The quotas of an account: the configuration's, but for those that are its own. */
export type LimitsOf = (accountId: number) => QuotaSettings;

/** One of them. */
export type LimitOf = (accountId: number) => number | Promise<number>;

export type QuotaOverrides = {
  limitsOf: LimitsOf;
  /** The quota `loginsPerAccount` of the account with this (normal) address: known before the account is. */
  loginsOf: (email: string) => number;
  close(): Promise<void>;
};

type OverrideOptions = {
  db: Sql;
  quotas: QuotaSettings;
  /** How soon an operator's change is known here. */
  intervalMs?: number;
  onError: (error: unknown) => void;
};

/**
 * Remembers which accounts have quotas of their own, for what is asked with every request and message.
 * They are an operator's exceptions: few enough to be read all at once.
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

// A large array of rubbish must not be answered with a larger one.
const maxProblems = 100;

/** Throws `invalid-input` with what is larger than it may be, if anything is. */
export function refuseOversized(problems: Problem[]): void {
  if (problems.length === 0) return;
  const message = 'The request contains something larger than allowed.';
  throw new DomainError('invalid-input', message, { problems: problems.slice(0, maxProblems) });
}

type Within = {
  accountId: number;
  quotas: QuotaSettings;
  /** What it adds to which quotas. */
  adding: Partial<Record<QuotaName, number>>;
};

// Room that others took, and gave back, between a refusal and the look at why.
const maxAttempts = 5;

/**
 * Runs a statement that stores something only within the account's quotas, and gives null where it did
 * not. Then it says why not: `quota-exceeded`, or `unauthenticated` where the account is gone.
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

/** Throws what speaks against it, for whoever has the account's usage locked: before anything is stored. */
export async function refuseBeyond(sql: Sql, within: Within): Promise<void> {
  const refusal = await findRefusal(sql, within);
  if (refusal) throw refusal;
}

/** Why something was not stored, for whoever has the account's usage locked. */
export async function explainRefusal(sql: Sql, within: Within): Promise<DomainError> {
  const refusal = await findRefusal(sql, within);
  return (
    refusal ?? new DomainError('unavailable', 'Nothing was stored, and no quota explains why.')
  );
}

/** Null where it would be within all quotas by now. */
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
