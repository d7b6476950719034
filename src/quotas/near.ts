import { insertEntries } from '../audit/audit.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { type CountRetention, listStoredBytes } from './activity.ts';
import { today } from './quotas.ts';
import type { QuotaName, QuotaSettings } from './settings.ts';
import type { Clock, WallMs } from '../lib/clock-readings.ts';

/** The share of a quota at which warnings begin. */
const nearPart = 0.8;

type QuotaLevel = 'near' | 'used-up';

/** How much of a quota is used, as a word; null below 80 %. */
export function levelOf(used: number | null, limit: number): QuotaLevel | null {
  if (used === null || used < nearPart * limit) return null;
  return used >= limit ? 'used-up' : 'near';
}

/** A quota of which an account has used at least 80 %. */
type NearQuota = { accountId: number; quota: QuotaName; used: number; limit: number };

/**
 * Quotas of what an account stores, or may do in a day, and its connections, which grow with its fleet. The others are
 * counted by each process separately, or free again a moment later (requests, streams, exports): nobody could react in
 * time.
 */
const watched: QuotaName[] = [
  'devices',
  'devicesPerDay',
  'purposes',
  'purposeBytes',
  'profiles',
  'profileBytesTotal',
  'connections',
  'contacts',
  'pushTokens',
  'keys',
  'eventsPerDay',
  'messagesPerDay',
  'webhooksPerDay',
  'smsPerDay',
  'storedBytes',
];

/**
 * All quotas of all accounts that are at least 80 % used. Reads a few rows for each account, and the connected devices.
 * `stored`: the estimates of `listStoredBytes`, by account.
 */
async function listNear(
  sql: Sql,
  quotas: QuotaSettings,
  stored: ReadonlyMap<number, number>,
): Promise<NearQuota[]> {
  const { rows } = await sql.query<NearQuota>(
    `
      with used (account_id, quota, used) as (
        select account_id, quota, used
          from account_usage u
         cross join lateral (values
           ('devices', devices),
           ('devicesPerDay', case when registrations_day = ${today} then registrations else 0 end),
           ('purposes', purposes), ('purposeBytes', purpose_bytes),
           ('profiles', profiles), ('profileBytesTotal', profile_bytes)) as v (quota, used)
        union all
        select account_id, 'connections', max(connected)
          from (select d.account_id, count(*) as connected
                  from presence p join device d on d.id = p.device_id
                 where p.connected and d.account_id is not null
                 group by d.account_id, p.connector_id) as c
         group by account_id
        union all
        select account_id, 'contacts', count(*) from contact group by account_id
        union all
        select account_id, 'pushTokens', count(*) from push_token group by account_id
        union all
        select account_id, 'keys', count(*) from api_key group by account_id
        union all
        select account_id, 'eventsPerDay', sum(events + events_left_out)::bigint
          from account_activity where day = ${today} group by account_id
        union all
        select account_id,
               case kind when 'account' then 'messagesPerDay' when 'sms' then 'smsPerDay'
                         else 'webhooksPerDay' end,
               used
          from message_count
         where day = ${today} and kind in ('account', 'sms', 'webhook') and key = ''
        union all
        select account_id, 'storedBytes', bytes
          from unnest($4::bigint[], $5::bigint[]) as s (account_id, bytes)
      )
      select u.account_id as "accountId", u.quota, u.used, coalesce(q.value, d.value) as limit
        from used u
        join unnest($1::text[], $2::bigint[]) as d (quota, value) on d.quota = u.quota
        left join account_quota q on q.account_id = u.account_id and q.quota = u.quota
       where u.used >= $3::numeric * coalesce(q.value, d.value)
       order by u.account_id, u.quota`,
    [
      watched,
      watched.map((quota) => quotas[quota]),
      nearPart,
      [...stored.keys()],
      [...stored.values()],
    ],
  );
  return rows;
}

/** How many accounts are near the end of each quota, or have used it up. */
export type NearCounts = ReadonlyMap<QuotaName, Record<QuotaLevel, number>>;

/** Quotas that more accounts than before have at this level, with their number. */
export function moreThan(
  before: NearCounts,
  now: NearCounts,
  level: QuotaLevel,
): Partial<Record<QuotaName, number>> {
  const grown = [...now].filter(
    ([quota, counts]) => counts[level] > (before.get(quota)?.[level] ?? 0),
  );
  return Object.fromEntries(grown.map(([quota, counts]) => [quota, counts[level]]));
}

type QuotaWatchOptions = {
  db: Database;
  quotas: QuotaSettings;
  retention: CountRetention;
  clock: Clock;
  /** Notifies an account, in the transaction that records it. */
  notify: (tx: Sql, accountId: number, near: NearQuota[], nowTs: WallMs) => Promise<void>;
  /** Called after each look. */
  onLook: (counts: NearCounts) => void;
  onError: (error: unknown) => void;
  intervalMs?: number;
};

type QuotaWatch = { look(): Promise<void>; close(): Promise<void> };

const lookEveryMs = 60_000;
/** The estimate of stored bytes reads each account's whole history, so it is made less often. */
const estimatedEveryMs = 3_600_000;
/** A state that lasts is reported again after this time. */
const againMs = 7 * 86_400_000;
/** First number of this file's advisory locks. */
const quotaLock = 22;

/**
 * Looks every minute which accounts are near the end of a quota, and notifies them: at 80 %, when it is used up, and
 * every week as long as that lasts. The account's audit trail records it, so several processes may do this, and a
 * restart notifies nobody again.
 */
export function startQuotaWatch(options: QuotaWatchOptions): QuotaWatch {
  const { db, quotas, retention, clock, onLook, onError, intervalMs = lookEveryMs } = options;
  let stored: ReadonlyMap<number, number> = new Map();
  let estimatedTs = -Infinity;

  async function read(): Promise<void> {
    if (Math.abs(clock() - estimatedTs) >= estimatedEveryMs) {
      stored = await listStoredBytes(db, retention);
      estimatedTs = clock();
    }
    const near = await listNear(db, quotas, stored);
    onLook(countNear(near));
    for (const [accountId, its] of Map.groupBy(near, ({ accountId: id }) => id))
      await tellOnce(options, accountId, its, clock());
  }

  let reading = Promise.resolve();
  const look = () => (reading = reading.then(read).catch(onError));
  const timer = setInterval(() => void look(), intervalMs);
  timer.unref();
  void look();
  return {
    look,
    async close() {
      clearInterval(timer);
      await reading;
    },
  };
}

function countNear(near: readonly NearQuota[]): NearCounts {
  const counts = new Map<QuotaName, Record<QuotaLevel, number>>(
    watched.map((quota) => [quota, { near: 0, 'used-up': 0 }]),
  );
  for (const { quota, used, limit } of near) {
    const level = levelOf(used, limit);
    const count = counts.get(quota);
    if (level !== null && count) count[level] += 1;
  }
  return counts;
}

const kindOf = ({ used, limit }: NearQuota) =>
  levelOf(used, limit) === 'used-up' ? ('quota-used-up' as const) : ('quota-near' as const);

async function tellOnce(
  { db, notify }: QuotaWatchOptions,
  accountId: number,
  near: NearQuota[],
  nowTs: WallMs,
): Promise<void> {
  // Usually all of it was reported before, which needs neither a transaction nor a lock.
  if ((await listUnreported(db, accountId, near, nowTs)).length === 0) return;
  await db.transaction(async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1, $2)', [quotaLock, accountId % 2 ** 31]);
    const unreported = await listUnreported(tx, accountId, near, nowTs);
    if (unreported.length === 0) return;
    const by = { actor: { by: 'service', sessionId: null, address: null }, ts: nowTs } as const;
    const entries = unreported.map((one) => {
      const { quota, used, limit } = one;
      return { ...by, kind: kindOf(one), details: { quota, used, limit } };
    });
    await insertEntries(tx, accountId, entries);
    await notify(tx, accountId, unreported, nowTs);
  });
}

async function listUnreported(
  sql: Sql,
  accountId: number,
  near: NearQuota[],
  nowTs: WallMs,
): Promise<NearQuota[]> {
  const { rows } = await sql.query<{ kind: string; quota: string }>(
    `select distinct kind, details ->> 'quota' as quota
       from account_audit
      where account_id = $1 and kind in ('quota-near', 'quota-used-up')
        and ts > ms_to_timestamp($2)`,
    [accountId, nowTs - againMs],
  );
  const reported = new Set(rows.map(({ kind, quota }) => `${kind} ${quota}`));
  // Somebody who has heard that a quota is used up need not hear a day later that it is near its end.
  return near.filter(
    (one) =>
      !reported.has(`${kindOf(one)} ${one.quota}`) && !reported.has(`quota-used-up ${one.quota}`),
  );
}
