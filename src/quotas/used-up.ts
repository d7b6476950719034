import type { Sql } from '../db/sql.ts';
import { today } from './queries.ts';
import type { QuotaName, QuotaSettings } from './settings.ts';

/**
 * How many accounts have used up each of the quotas of what is stored and of what a day brings; one that nobody has
 * used up is left out. Without `storedBytes`, which is estimated elsewhere. `part`: from which part of a quota on.
 */
export async function countUsedUp(
  sql: Sql,
  quotas: QuotaSettings,
  part = 1,
): Promise<Map<QuotaName, number>> {
  const { rows } = await sql.query<{ quota: QuotaName; accounts: number }>(
    `
      with used as (
        select u.account_id, each.quota, each.used
          from account_usage u
         cross join lateral (values
           ('devices', u.devices::bigint),
           ('purposes', u.purposes::bigint),
           ('purposeBytes', u.purpose_bytes::bigint),
           ('profiles', u.profiles::bigint),
           ('profileBytesTotal', u.profile_bytes::bigint),
           ('devicesPerDay',
             case when u.registrations_day = ${today} then u.registrations else 0 end::bigint)
         ) as each (quota, used)
        union all
        select account_id, 'contacts', count(*) from contact group by account_id
        union all
        select account_id, 'pushTokens', count(*) from push_token group by account_id
        union all
        select account_id, 'keys', count(*) from api_key group by account_id
        union all
        select account_id, 'eventsPerDay', sum(events + events_left_out)
          from account_activity
         where day = ${today}
         group by account_id
        union all
        select account_id,
               case kind when 'sms' then 'smsPerDay' when 'webhook' then 'webhooksPerDay'
                         else 'messagesPerDay' end,
               used
          from message_count
         where kind in ('account', 'sms', 'webhook') and key = '' and day >= ${today}
      )
      select quota, count(*)::integer as accounts
        from used
        left join account_quota own using (account_id, quota)
       where used >= $2::float8 * coalesce(own.value, ($1::jsonb ->> quota)::bigint)
       group by quota`,
    [JSON.stringify(quotas), part],
  );
  return new Map(rows.map(({ quota, accounts }) => [quota, accounts]));
}

export type UsedUpWatch = {
  /** By quota, how many accounts have used it up. */
  counts(): ReadonlyMap<QuotaName, number>;
  close(): Promise<void>;
};

export type UsedUpOptions = {
  /** By quota; one that nobody has used up may be left out. */
  count: () => Promise<ReadonlyMap<QuotaName, number>>;
  intervalMs?: number;
  /** More accounts than before have used up a quota. */
  onMore: (quota: QuotaName, accounts: number) => void;
  onError: (error: unknown) => void;
};

/** Counts every minute, for whoever runs the service: it knows how many, and not who. */
export function watchUsedUp(options: UsedUpOptions): UsedUpWatch {
  const { count, intervalMs = 60_000, onMore, onError } = options;
  let known: ReadonlyMap<QuotaName, number> = new Map();
  let looking: Promise<void> | null = null;
  const look = async () => {
    const before = known;
    known = await count();
    for (const [quota, accounts] of known)
      if (accounts > (before.get(quota) ?? 0)) onMore(quota, accounts);
  };
  const run = () =>
    void (looking ??= look()
      .catch(onError)
      .finally(() => (looking = null)));
  const timer = setInterval(run, intervalMs).unref();
  run();
  return {
    counts: () => known,
    async close() {
      clearInterval(timer);
      await looking;
    },
  };
}
