import { inflateRawSync } from 'node:zlib';
import type { Purpose } from '../contract/purpose.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import type { Account } from '../http/request.ts';
import { labelsOf } from '../http/router.ts';
import { quotaExceeded } from '../quotas/quotas.ts';
import type { Backtest, BacktestCaveat } from './backtest.ts';
import type { Reserved } from './budget.ts';

/*
 * Backtests that are kept: what was asked, and what was found, in the database. A backtest is a job (`src/jobs`) and
 * has its identifier; the processes that play it are in run.ts.
 */

/** What is played. Times in ms; `endTs` is inclusive. */
export type StoredBacktest = {
  candidate: Purpose[];
  against: 'recorded' | { purposes: Purpose[] } | null;
  map: Backtest['map'];
  startTs: number;
  endTs: number;
};

/** Kinds of lines that are kept, each with the name of its list. A list counts on beyond `mostLines`. */
export const lists = {
  firing: 'firings',
  move: 'moves',
  alarm: 'alarms',
  difference: 'differences',
} as const;
export type LineKind = keyof typeof lists;
type ListName = (typeof lists)[LineKind];
export const mostLines = 1_000_000;

/** Whose backtests. `keyId`: only those of this API key, and of their devices those with one of `labels`; null: all. */
type BacktestOwner = {
  accountId: number;
  keyId: string | null;
  labels: readonly string[] | null;
};

/** A key that is confined to labels sees only its own backtests, because others concern other devices. */
export function ownerOf(account: Account): BacktestOwner {
  const labels = labelsOf(account);
  return { accountId: account.accountId, keyId: labels ? account.sessionId : null, labels };
}

export const noSuchBacktest = () => new DomainError('not-found', 'There is no such backtest.');

type NewBacktest = {
  jobUuid: string;
  name: string | null;
  asked: StoredBacktest;
  playedFromTs: number;
  devices: readonly { id: number; uuid: string }[];
  reserved: Reserved;
};

/** Throws `quota-exceeded` if the account keeps so many. Its usage is locked (`lockUsage`). */
export async function refuseMoreThan(tx: Sql, accountId: number, limit: number): Promise<void> {
  const { rows } = await tx.query<{ used: number }>(
    'select count(*) as used from backtest where account_id = $1',
    [accountId],
  );
  const used = rows[0]?.used ?? 0;
  if (used >= limit) throw quotaExceeded({ quota: 'backtests', limit, used });
}

/** Stores a backtest, whose job was stored. */
export async function insertBacktest(tx: Sql, made: NewBacktest): Promise<void> {
  const { jobUuid, name, asked, playedFromTs, devices, reserved } = made;
  const { accountId, day, values } = reserved;
  const { startTs, endTs } = asked;
  await tx.query(
    `with made as (
       insert into backtest (job_id, account_id, name, asked, start_ts, end_ts, played_from_ts,
                             reserved, reserved_on, device_uuids)
       select id, $2, $3, $4, $5, $6, $7, $8, $9, $11 from job where uuid = $1
       returning job_id)
     insert into backtest_device (backtest_id, device_id, account_id)
     select made.job_id, d.id, $2 from made, unnest($10::bigint[]) as d (id)`,
    [
      jobUuid,
      accountId,
      name,
      JSON.stringify(asked),
      startTs,
      endTs,
      playedFromTs,
      values,
      day,
      devices.map(({ id }) => id),
      devices.map(({ uuid }) => uuid),
    ],
  );
}

/** How many, over all devices. */
type Counts = Record<'values' | ListName, number>;

/** What is said of a backtest. Times in ms. */
export type FoundBacktest = {
  backtestId: string;
  name: string | null;
  state: 'running' | 'done' | 'stopped';
  done: number;
  of: number;
  startTs: number;
  endTs: number;
  playedFromTs: number;
  pId: string | null;
  startedTs: number;
  endedTs: number | null;
  counts: Counts;
  caveats: BacktestCaveat[];
};

const isOwn = `b.account_id = $1 and ($2::uuid is null or j.key_id = $2)`;
/** Devices `d` that are there, and that the key may see. */
const isSeen = `d.account_id = $1 and ($3::text[] is null or d.labels && $3)`;
const listNames = Object.values(lists);

const found = `
  select j.uuid as "backtestId", b.name,
         case j.state when 'playing' then 'running' else j.state end as state, j.done, j.total as of,
         b.start_ts as "startTs", b.end_ts as "endTs", b.played_from_ts as "playedFromTs", b.installed_p_id as "pId",
         j.created_at as "startedTs", j.ended_at as "endedTs", seen.*
    from backtest b
    join job j on j.id = b.job_id
   cross join lateral (
     select json_build_object(
              'values', coalesce(sum(bd.measured), 0),
              ${listNames.map((name) => `'${name}', coalesce(sum(bd.${name}), 0)`).join(', ')}) as counts,
            array(select distinct c.name
                    from backtest_device o
                    join device d on d.id = o.device_id, unnest(o.caveats) as c (name)
                   where o.backtest_id = b.job_id and ${isSeen} order by 1) as caveats
       from backtest_device bd
       join device d on d.id = bd.device_id
      where bd.backtest_id = b.job_id and ${isSeen}) seen`;

/** Newest first. */
export async function listBacktests(sql: Sql, owner: BacktestOwner): Promise<FoundBacktest[]> {
  const { accountId, keyId, labels } = owner;
  const { rows } = await sql.query<FoundBacktest>(
    `${found} where ${isOwn} order by b.job_id desc limit 1000`,
    [accountId, keyId, labels],
  );
  return rows;
}

/** Null if there is none. */
export async function findBacktest(
  sql: Sql,
  { accountId, keyId, labels }: BacktestOwner,
  backtestId: string,
): Promise<FoundBacktest | null> {
  const { rows } = await sql.query<FoundBacktest>(`${found} where ${isOwn} and j.uuid = $4`, [
    accountId,
    keyId,
    labels,
    backtestId,
  ]);
  return rows[0] ?? null;
}

/** The number of a backtest's job; null if there is none. */
export async function findJobId(
  sql: Sql,
  { accountId, keyId }: BacktestOwner,
  backtestId: string,
): Promise<number | null> {
  const { rows } = await sql.query<{ id: number }>(
    `select j.id from backtest b join job j on j.id = b.job_id where ${isOwn} and j.uuid = $3`,
    [accountId, keyId, backtestId],
  );
  return rows[0]?.id ?? null;
}

/** The same, and locks the job's row: whoever plays it locks that first, too. */
export async function lockJob(
  tx: Sql,
  { accountId, keyId }: BacktestOwner,
  backtestId: string,
): Promise<number | null> {
  const { rows } = await tx.query<{ id: number }>(
    `select j.id from backtest b join job j on j.id = b.job_id where ${isOwn} and j.uuid = $3
        for update of j`,
    [accountId, keyId, backtestId],
  );
  return rows[0]?.id ?? null;
}

/** A backtest whose candidate is to be installed. `pId`: it was, with this profile; null: it was not. */
export type ToInstall = {
  jobId: number;
  state: 'running' | 'done' | 'stopped';
  candidate: Purpose[];
  devices: string[];
  pId: string | null;
  /** Not all of its devices were given up. */
  wasPlayed: boolean;
};

/** Null if there is none. */
export async function findToInstall(
  sql: Sql,
  { accountId, keyId }: BacktestOwner,
  backtestId: string,
): Promise<ToInstall | null> {
  const { rows } = await sql.query<ToInstall>(
    `select j.id as "jobId", case j.state when 'playing' then 'running' else j.state end as state,
            b.asked->'candidate' as candidate, b.device_uuids::text[] as devices,
            b.installed_p_id as "pId",
            (select coalesce(bool_or(not has_failed), true) from backtest_device
              where backtest_id = b.job_id) as "wasPlayed"
       from backtest b join job j on j.id = b.job_id
      where ${isOwn} and j.uuid = $3`,
    [accountId, keyId, backtestId],
  );
  return rows[0] ?? null;
}

/** Notes what was installed. False if it was before, or the backtest is gone. */
export async function noteInstalled(tx: Sql, jobId: number, pId: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    'update backtest set installed_p_id = $2 where job_id = $1 and installed_p_id is null',
    [jobId, pId],
  );
  return rowCount === 1;
}

/** Removes a backtest and its job. Whoever plays it notices. */
export async function deleteBacktest(tx: Sql, jobId: number): Promise<void> {
  await tx.query('delete from job where id = $1', [jobId]);
}

/** Removes the backtests that ended before that time, ms, one by one. */
export async function forgetBacktests(
  sql: Sql,
  beforeTs: number,
  signal: AbortSignal,
): Promise<void> {
  const { rows } = await sql.query<{ id: number }>(
    `select j.id from backtest b join job j on j.id = b.job_id
      where j.state <> 'playing' and j.ended_at < ms_to_timestamp($1)`,
    [beforeTs],
  );
  for (const { id } of rows) {
    if (signal.aborted) return;
    await deleteBacktest(sql, id);
  }
}

/** Where a page begins: at that line of a device's block. */
export type LinePlace = { device: number; nth: number; at: number };
const firstPlace: LinePlace = { device: 0, nth: 0, at: 0 };

type PageOptions = {
  jobId: number;
  kind: LineKind;
  /** Only of this device, by its uuid; null: of all. */
  device: string | null;
  after: LinePlace | null;
  limit: number;
};

/** Lines of one kind as JSON text, in their order, and where the next page begins; null: these are the last ones. */
export async function listLines(
  sql: Sql,
  { accountId, labels }: BacktestOwner,
  { jobId, kind, device, after, limit }: PageOptions,
): Promise<{ lines: string[]; next: LinePlace | null }> {
  const from = after ?? firstPlace;
  const { rows } = await sql.query<{ device: number; nth: number; body: Buffer }>(
    `with page as (
       select l.device_id, l.nth, sum(l.count) over (order by l.device_id, l.nth) - l.count as before
         from backtest_lines l
         join device d on d.id = l.device_id
        where l.backtest_id = $2 and l.kind = $4 and (l.device_id, l.nth) >= ($5::bigint, $6::integer)
          and ($7::uuid is null or d.uuid = $7) and ${isSeen}
        order by l.device_id, l.nth
        limit $8 + 1)
     select device_id as device, nth, l.body
       from page
       join backtest_lines l using (device_id, nth)
      where l.backtest_id = $2 and l.kind = $4 and page.before <= $8
      order by device_id, nth`,
    [accountId, jobId, labels, kind, from.device, from.nth, device, limit + from.at],
  );
  const lines: string[] = [];
  for (const { device: of, nth, body } of rows) {
    const all = inflateRawSync(body).toString('utf8').split('\n').slice(0, -1);
    const isFirst = of === from.device && nth === from.nth;
    for (const [at, line] of all.entries()) {
      if (isFirst && at < from.at) continue;
      if (lines.length >= limit) return { lines, next: { device: of, nth, at } };
      lines.push(line);
    }
  }
  return { lines, next: null };
}

type PlayedDevice = Counts & {
  device: number;
  deviceAuthUuid: string;
  state: 'waiting' | 'done' | 'failed';
  caveats: BacktestCaveat[];
};

/** The devices of a backtest after the one with that number, in the order of their registration. */
export async function listDevices(
  sql: Sql,
  { accountId, labels }: BacktestOwner,
  { jobId, after, limit }: { jobId: number; after: number; limit: number },
): Promise<PlayedDevice[]> {
  const { rows } = await sql.query<PlayedDevice>(
    `select bd.device_id as device, d.uuid as "deviceAuthUuid",
            case when bd.has_failed then 'failed' when bd.is_done then 'done' else 'waiting' end as state,
            bd.measured as values, ${listNames.map((name) => `bd.${name}`).join(', ')}, bd.caveats
       from backtest_device bd
       join device d on d.id = bd.device_id
      where bd.backtest_id = $2 and bd.device_id > $4 and ${isSeen}
      order by bd.device_id
      limit $5`,
    [accountId, jobId, labels, after, limit],
  );
  return rows;
}

/** How long nothing may be heard of the run that plays a backtest until another one takes it up. */
const silentSeconds = 20;
/** Backtests of one account that are played at once, by all processes. */
const mostOfAccount = 2;

/** `b` is played. An hour in which the clock was set back does not count. */
const isPlayed = (b: string) => `
  (${b}.run is not null and ${b}.heard_at between clock_timestamp() - interval '${silentSeconds} seconds'
                                         and clock_timestamp() + interval '${silentSeconds} seconds')`;

/** Whether the job of `j` waits, and may be played. */
const isWaiting = (b: string, j: string) => `
  ${j}.state = 'playing' and not ${isPlayed(b)}
  and exists (select from account where id = ${j}.account_id and disabled_at is null and removed_at is null)
  and (select count(*) from backtest o join job oj on oj.id = o.job_id
        where o.account_id = ${b}.account_id and oj.state = 'playing' and ${isPlayed('o')}) < ${mostOfAccount}`;

/** A backtest that this run plays now. `failures`: how often in a row the device that is next failed. */
export type Claimed = { jobId: number; accountId: number; failures: number };

/**
 * Takes up the backtest that is next: of the accounts with the fewest that are played, that of the one that has waited
 * longest. Null if none waits. One process looks at a time (`lock`).
 */
export async function claimNext(tx: Sql, run: string, lock: number): Promise<Claimed | null> {
  await tx.query('select pg_advisory_xact_lock($1)', [lock]);
  const { rows } = await tx.query<Claimed>(
    `with next as (
       select j.id
         from backtest b join job j on j.id = b.job_id
        where ${isWaiting('b', 'j')}
        order by (select count(*) from backtest o
                   where o.account_id = b.account_id and ${isPlayed('o')}),
                 (select max(oj.served_at) from backtest o join job oj on oj.id = o.job_id
                   where o.account_id = b.account_id), j.served_at, j.id
        limit 1
          for no key update of j
     ), served as (
       update job j set served_at = clock_timestamp() from next where j.id = next.id
     )
     update backtest b set run = $1, heard_at = clock_timestamp()
       from next where b.job_id = next.id
     returning b.job_id as "jobId", b.account_id as "accountId", b.failures`,
    [run],
  );
  return rows[0] ?? null;
}

/** These runs go on. */
export async function keepClaims(sql: Sql, runs: readonly string[]): Promise<void> {
  await sql.query('update backtest set heard_at = clock_timestamp() where run = any($1::uuid[])', [
    runs,
  ]);
}

/** A run has ended. `hasFailed`: the device that was next is to blame. */
export async function releaseClaim(sql: Sql, run: string, hasFailed: boolean): Promise<void> {
  await sql.query(
    'update backtest set run = null, failures = failures + $2::integer where run = $1',
    [run, hasFailed ? 1 : 0],
  );
}

/** What is left to do of a backtest. `kept`: lines of each kind that are stored. */
type Left = {
  asked: StoredBacktest;
  devices: { id: number; uuid: string }[];
  kept: Partial<Record<LineKind, number>>;
};

/** Null if it is gone. */
export async function findLeft(sql: Sql, jobId: number): Promise<Left | null> {
  const { rows } = await sql.query<Left>(
    `select b.asked,
            (select coalesce(json_agg(json_build_object('id', d.id, 'uuid', d.uuid) order by d.id), '[]')
               from backtest_device bd join device d on d.id = bd.device_id
              where bd.backtest_id = b.job_id and not bd.is_done and d.account_id = b.account_id) as devices,
            (select coalesce(json_object_agg(kind, count), '{}')
               from (select l.kind, sum(l.count) as count
                       from backtest_lines l
                       join backtest_device bd using (backtest_id, device_id)
                      where l.backtest_id = b.job_id and bd.is_done
                      group by l.kind) k) as kept
       from backtest b where b.job_id = $1`,
    [jobId],
  );
  return rows[0] ?? null;
}

/** Whether a backtest of another account waits, and nobody plays it. */
export async function othersWait(sql: Sql, accountId: number): Promise<boolean> {
  const { rows } = await sql.query(
    `select from backtest b join job j on j.id = b.job_id
      where b.account_id <> $1 and ${isWaiting('b', 'j')} limit 1`,
    [accountId],
  );
  return rows.length > 0;
}

/**
 * Gives up the device that is next, which failed again and again, with what was kept of it. Null if none is left, or the
 * backtest is not this run's.
 */
export async function skipDevice(
  tx: Sql,
  jobId: number,
  run: string,
): Promise<{ deviceAuthUuid: string; reason: string } | null> {
  const { rows } = await tx.query<{ deviceAuthUuid: string }>(
    `with own as (
       select j.id from job j join backtest b on b.job_id = j.id
        where j.id = $1 and b.run = $2 and j.state = 'playing'
          for no key update of j
     ), skipped as (
     update backtest_device bd set is_done = true, has_failed = true
       from own, device d
      where bd.backtest_id = own.id and d.id = bd.device_id
        and bd.device_id = (select min(o.device_id)
                              from backtest_device o join device od on od.id = o.device_id
                             where o.backtest_id = own.id and not o.is_done and od.account_id = o.account_id)
     returning bd.device_id, d.uuid
     ), cleared as (
       delete from backtest_lines l using own, skipped
        where l.backtest_id = own.id and l.device_id = skipped.device_id
       returning octet_length(l.body) as bytes
     ), tried as (
       update backtest b set failures = 0, bytes = b.bytes - (select coalesce(sum(bytes), 0) from cleared)
         from own where b.job_id = own.id
     )
     select uuid as "deviceAuthUuid" from skipped`,
    [jobId, run],
  );
  return rows[0] ? { ...rows[0], reason: 'internal-error' } : null;
}

/** Backtests that have ended, but are still counted as reserved. */
export async function listUnsettled(sql: Sql): Promise<{ jobId: number; accountId: number }[]> {
  const { rows } = await sql.query<{ jobId: number; accountId: number }>(
    `select b.job_id as "jobId", b.account_id as "accountId"
       from backtest b join job j on j.id = b.job_id join account a on a.id = b.account_id
      where b.reserved is not null and j.state <> 'playing' and a.removed_at is null
      limit 100`,
  );
  return rows;
}

/** Takes back what is reserved for a backtest, with what it has read; null if nothing is. */
export async function takeReserved(
  tx: Sql,
  jobId: number,
): Promise<(Reserved & { read: number }) | null> {
  const { rows } = await tx.query<Reserved & { read: number }>(
    `with taken as (
       select job_id, account_id, reserved, reserved_on, read from backtest
        where job_id = $1 and reserved is not null for update
     ), settled as (
       update backtest b set reserved = null from taken where b.job_id = taken.job_id
     )
     select account_id as "accountId", reserved_on::text as day, reserved as values,
            read
       from taken`,
    [jobId],
  );
  return rows[0] ?? null;
}
