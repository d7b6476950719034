import type { Sql } from '../db/sql.ts';
import type { Actor, AuditKind } from './audit.ts';
import type { Clock } from '../lib/clock-readings.ts';

/** Records refused attempts, which anybody may make as often as they like. */
export type RefusalLog = {
  /** Kept in memory and written within a second, so that the answer to a refused login need not wait. */
  note(accountId: number, kind: AuditKind, actor: Actor): void;
  /** Writes what is waiting. */
  flush(): Promise<void>;
  close(): Promise<void>;
};

type RefusalLogOptions = {
  db: Sql;
  clock: Clock;
  intervalMs?: number;
  /** The most different attempts that may wait to be written. Further ones are not recorded. */
  maxWaiting?: number;
  onError: (error: unknown) => void;
};

const hourMs = 3_600_000;

/**
 * Equal attempts (account, kind, address, hour) share one row with a count. A process that is killed loses those of
 * the last second.
 */
export function startRefusalLog(options: RefusalLogOptions): RefusalLog {
  const { db, clock, intervalMs = 1_000, maxWaiting = 1_000, onError } = options;
  let waiting = new Map<string, AuditRefusal>();
  let writing = Promise.resolve();

  function add(refusal: AuditRefusal): void {
    const { accountId, kind, actor, hourTs } = refusal;
    const key = `${accountId} ${kind} ${hourTs} ${actor.address}`;
    const known = waiting.get(key);
    if (known) {
      known.count += refusal.count;
      known.lastTs = Math.max(known.lastTs, refusal.lastTs);
    } else if (waiting.size < maxWaiting) waiting.set(key, refusal);
  }

  async function write(): Promise<void> {
    if (waiting.size === 0) return;
    const refusals = [...waiting.values()];
    waiting = new Map();
    try {
      await addRefusals(db, refusals);
    } catch (error) {
      for (const refusal of refusals) add(refusal);
      throw error;
    }
  }

  const flush = () => (writing = writing.then(write).catch(onError));
  const timer = setInterval(() => void flush(), intervalMs);
  timer.unref();
  return {
    note(accountId, kind, actor) {
      const ts = clock();
      const hourTs = ts - (ts % hourMs);
      add({ accountId, kind, actor, hourTs, firstTs: ts, lastTs: ts, count: 1 });
    },
    flush,
    async close() {
      clearInterval(timer);
      await flush();
    },
  };
}

/** Equal attempts of one hour. Times in ms. */
type AuditRefusal = {
  accountId: number;
  kind: AuditKind;
  actor: Actor;
  hourTs: number;
  firstTs: number;
  lastTs: number;
  count: number;
};

/** How many addresses get a row of their own, per account, kind and hour. The others share one row. */
const addressesAnHour = 100;

/** Adds attempts to the rows of their hours, except for accounts that are gone. */
async function addRefusals(sql: Sql, refusals: readonly AuditRefusal[]): Promise<void> {
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
