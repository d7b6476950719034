import type { Sql } from '../db/sql.ts';
import { listOverrides } from './quotas.ts';
import type { QuotaSettings } from './settings.ts';

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

export type OverrideOptions = {
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
