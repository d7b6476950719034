import type { Sql } from '../db/sql.ts';
import type { Actor } from './entry.ts';
import type { AuditKind } from './schema.ts';

/** Equal attempts of one hour. Times in ms. */
export type AuditRefusal = {
  accountId: number;
  kind: AuditKind;
  actor: Actor;
  hourTs: number;
  firstTs: number;
  lastTs: number;
  count: number;
};

/** Addresses of an account, a kind and an hour that have a row of their own; the others share one. */
const addressesAnHour = 100;

/** Adds to the rows of their hours. Of accounts that are gone there are none. */
export async function addRefusals(sql: Sql, refusals: readonly AuditRefusal[]): Promise<void> {
  await sql.query(
    `
      with asked as (
        select *, ms_to_timestamp(hour_ts) as hour,
               row_number() over (partition by account_id, kind, hour_ts order by address) as place
          from unnest($1::bigint[], $2::text[], $3::text[], $4::uuid[], $5::text[], $6::bigint[],
                      $7::bigint[], $8::bigint[], $9::integer[])
            as asked (account_id, kind, actor, session_id, address, hour_ts, first_ts, last_ts, count)
      ), placed as (
        select asked.*,
               case when exists (
                      select from account_audit a
                       where a.account_id = asked.account_id and a.kind = asked.kind
                         and a.hour = asked.hour and a.address = asked.address)
                      or place + (
                      select count(*) from account_audit a
                       where a.account_id = asked.account_id and a.kind = asked.kind
                         and a.hour = asked.hour) <= ${addressesAnHour}
                    then address else '' end as row_address
          from asked
          join account on account.id = asked.account_id
      )
      insert into account_audit as a
        (account_id, ts, kind, actor, session_id, address, hour, count, last_at)
      select account_id, ms_to_timestamp(min(first_ts)), kind, min(actor), (array_agg(session_id))[1],
             row_address, hour, sum(count), ms_to_timestamp(max(last_ts))
        from placed
       group by account_id, kind, hour, row_address
       order by account_id, kind collate "C", hour, row_address collate "C"
      on conflict (account_id, kind, hour, address) where hour is not null do update
         set count = least(a.count::bigint + excluded.count, 2147483647),
             last_at = greatest(a.last_at, excluded.last_at)`,
    [
      refusals.map(({ accountId }) => accountId),
      refusals.map(({ kind }) => kind),
      refusals.map(({ actor }) => actor.by),
      refusals.map(({ actor }) => actor.sessionId),
      refusals.map(({ actor }) => actor.address ?? ''),
      refusals.map(({ hourTs }) => hourTs),
      refusals.map(({ firstTs }) => firstTs),
      refusals.map(({ lastTs }) => lastTs),
      refusals.map(({ count }) => count),
    ],
  );
}
