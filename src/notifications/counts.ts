import type { Sql } from '../db/sql.ts';
import type { WallMs } from '../lib/clock-readings.ts';
import type { Counted, Counter } from './channels/channel.ts';
import { counterName, countersOf, joiningOf, type QuotasOf } from './daily-limits.ts';

// How much of the limits of a day is used: the rows of `message_count`, of which the limits are in `daily-limits.ts`.

/** The day (UTC) of a parameter in ms. */
export const day = (parameter: string) =>
  `(ms_to_timestamp(${parameter}) at time zone 'UTC')::date`;

/**
 * Locks the counters until the transaction ends and returns what is used today, by `counterName`. It always locks in
 * the same order, which rules out deadlocks.
 */
async function lockCounts(
  tx: Sql,
  counters: readonly Counter[],
  nowTs: WallMs,
): Promise<Map<string, number>> {
  if (counters.length === 0) return new Map();
  const { rows } = await tx.query<Counter & { used: number }>({
    name: 'outbox-lock-counts',
    text: `
      insert into message_count as c (kind, account_id, key, day, used)
      select kind, account_id, key, ${day('$4')}, 0
        from unnest($1::text[], $2::bigint[], $3::text[]) as asked (kind, account_id, key)
       order by kind collate "C", account_id, key collate "C"
      on conflict (kind, account_id, key) do update
        set used = case when c.day < excluded.day then 0 else c.used end,
            day = greatest(c.day, excluded.day)
      returning kind, account_id as "accountId", key, used`,
    values: [
      counters.map(({ kind }) => kind),
      counters.map(({ accountId }) => accountId),
      counters.map(({ key }) => key),
      nowTs,
    ],
  });
  return new Map(rows.map((row) => [counterName(row), row.used]));
}

/**
 * How much of these messages' daily limits is used. The counters stay locked until the transaction ends; a transaction
 * locks all of its counters in the first call, because two calls have no common order.
 */
export async function lockCountsOf(
  tx: Sql,
  messages: readonly Counted[],
  { quotasOf, nowTs }: { quotasOf: QuotasOf; nowTs: WallMs },
) {
  const counters = new Map<string, Counter>();
  for (const message of messages) {
    const joining = joiningOf(message, quotasOf);
    for (const counter of [...countersOf(message, quotasOf), ...(joining ? [joining] : [])])
      counters.set(counterName(counter), counter);
  }
  const before = await lockCounts(tx, [...counters.values()], nowTs);
  const used = new Map(before);
  const listCounted = () =>
    [...counters].flatMap(([name, counter]) => {
      const more = (used.get(name) ?? 0) - (before.get(name) ?? 0);
      return more > 0 ? [{ ...counter, more }] : [];
    });
  return { used, listCounted };
}

/** How much of each daily limit of a message is used today. */
export async function readUsed(
  sql: Sql,
  message: Counted,
  { quotasOf, nowTs }: { quotasOf: QuotasOf; nowTs: WallMs },
): Promise<{ used: number; limit: number }[]> {
  const limits = countersOf(message, quotasOf);
  const { rows } = await sql.query<Counter & { used: number }>(
    `select c.kind, c.account_id as "accountId", c.key, c.used
       from message_count c
       join unnest($1::text[], $2::bigint[], $3::text[]) as asked (kind, account_id, key)
         on c.kind = asked.kind and c.account_id = asked.account_id and c.key = asked.key
      where c.day >= ${day('$4')}`,
    [
      limits.map(({ kind }) => kind),
      limits.map(({ accountId }) => accountId),
      limits.map(({ key }) => key),
      nowTs,
    ],
  );
  const used = new Map(rows.map((row) => [counterName(row), row.used]));
  return limits.map((one) => ({ used: used.get(counterName(one)) ?? 0, limit: one.limit }));
}

/** Adds to counters that the transaction has locked (`lockCountsOf`). */
export async function writeCounts(
  tx: Sql,
  counted: readonly (Counter & { more: number })[],
): Promise<void> {
  await tx.query(
    `update message_count c
        set used = c.used + m.more
       from unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[])
         as m (kind, account_id, key, more)
      where c.kind = m.kind and c.account_id = m.account_id and c.key = m.key`,
    [
      counted.map(({ kind }) => kind),
      counted.map(({ accountId }) => accountId),
      counted.map(({ key }) => key),
      counted.map(({ more }) => more),
    ],
  );
}
