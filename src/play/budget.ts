import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { today } from '../quotas/quotas.ts';

/** Measurements that are counted for an account on that day (UTC, `YYYY-MM-DD`). */
export type Reserved = { accountId: number; day: string; values: number };

/**
 * Counts measurements that a backtest may read, within the quota `backtestValuesPerDay`. Throws `too-many-requests` if
 * that is too many. The account's usage is locked (`lockUsage`).
 */
export async function reserveValues(
  tx: Sql,
  { accountId, values, limit }: { accountId: number; values: number; limit: number },
): Promise<Reserved> {
  const { rows } = await tx.query<{ day: string; used: number; leftSeconds: number }>(
    `update account_usage
        set played_day = ${today}, played = case when played_day = ${today} then played else 0 end + $2
      where account_id = $1
     returning played_day::text as day, played as used,
               extract(epoch from (${today} + 1)::timestamp - now() at time zone 'UTC')::float8 as "leftSeconds"`,
    [accountId, values],
  );
  const [row] = rows;
  if (!row) throw new Error('The usage of an account is not locked.');
  const { day, used, leftSeconds } = row;
  if (used <= limit) return { accountId, day, values };
  const left = Math.max(0, limit - (used - values));
  const message =
    `This exceeds the quota backtestValuesPerDay: the backtest would read about ${values} measurements, and ${left} are ` +
    'left today (UTC). Ask for a shorter range or fewer devices, or wait.';
  const seconds = Math.ceil(leftSeconds);
  const rate = {
    quota: 'backtestValuesPerDay',
    limit,
    windowSeconds: 86_400,
    resetSeconds: seconds,
  };
  throw new DomainError('too-many-requests', message, { retryAfterSeconds: seconds, rate });
}

/** Counts what was read in the place of what was reserved, unless the day is over. */
export async function settleValues(
  sql: Sql,
  { accountId, day, values }: Reserved,
  readValues: number,
): Promise<void> {
  await sql.query(
    `update account_usage set played = greatest(0, played - $3::bigint)
      where account_id = $1 and played_day = $2::date`,
    [accountId, day, values - readValues],
  );
}
