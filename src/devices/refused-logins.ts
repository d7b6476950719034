import { LRUCache } from 'lru-cache';
import type { Sql } from '../db/sql.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { DeviceParams } from '../http/schema.ts';
import type { Clock, WallMs } from '../lib/clock-readings.ts';
import { atMost } from '../lib/lru.ts';
import {
  noSuchDevice,
  type refusalReasons,
  type RefusedLogin,
  RefusedLoginList,
  RemovedLoginList,
  RemovedLoginsQuery,
} from './schema.ts';

/** Refused logins with a uuid, grouped by reason and address. `address`: empty if it is not known. */
type RefusedLogins = {
  uuid: string;
  reason: string;
  address: string;
  count: number;
  firstTs: number;
  lastTs: number;
  /** The device has not logged in since, as far as the writer knows. */
  isOpen: boolean;
};

/** How many groups are kept for each uuid; the newest. */
const keptRefusedLogins = 16;
/** How long they are kept, and how long a removed device's owner is. */
const refusedLoginDays = 30;

/**
 * Adds them to those of uuids that belong, or belonged, to a device; others are dropped. Nobody owns an unknown uuid;
 * and the reason `unknown`, for a uuid that does belong to a device, says nothing.
 */
async function addRefusedLogins(db: Sql, refused: RefusedLogins[]): Promise<void> {
  const { rows } = await db.query<{ uuid: string }>({
    name: 'devices-add-refused-logins',
    text: `
      with given as (
        select *
          from unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[],
                      $7::boolean[])
            as g (uuid, reason, address, count, first_ts, last_ts, is_open)
      ), owned as (
        select g.*, d.account_id, d.id as device_id,
               case when a.disabled_at is null then g.reason else 'account-disabled' end as why
          from given g
          join device d on d.uuid = g.uuid
          join account a on a.id = d.account_id
        union all
        select g.*, r.account_id, null, 'device-removed'
          from given g
          join removed_uuid r on r.uuid = g.uuid
      )
      insert into refused_login as kept
        (uuid, reason, address, account_id, device_id, count, first_at, last_at, is_open)
      select uuid, why, address, account_id, device_id, sum(count),
             ms_to_timestamp(min(first_ts)), ms_to_timestamp(max(last_ts)), bool_or(is_open)
        from owned
       where why <> 'unknown'
       group by uuid, why, address, account_id, device_id
       order by uuid, why, address
      on conflict (uuid, reason, address) do update
         set count = kept.count + excluded.count,
             first_at = least(kept.first_at, excluded.first_at),
             last_at = greatest(kept.last_at, excluded.last_at),
             is_open = excluded.is_open
      returning uuid`,
    values: [
      refused.map(({ uuid }) => uuid),
      refused.map(({ reason }) => reason),
      refused.map(({ address }) => address),
      refused.map(({ count }) => count),
      refused.map(({ firstTs }) => firstTs),
      refused.map(({ lastTs }) => lastTs),
      refused.map(({ isOpen }) => isOpen),
    ],
  });
  if (rows.length > 0) await trim(db, [...new Set(rows.map(({ uuid }) => uuid))]);
}

async function trim(db: Sql, uuids: string[]): Promise<void> {
  await db.query({
    name: 'devices-trim-refused-logins',
    text: `
      delete from refused_login
       where ctid = any(array(
         select place
           from unnest($1::uuid[]) as of_device (uuid)
          cross join lateral (
            select ctid as place
              from refused_login r
             where r.uuid = of_device.uuid
             order by last_at desc, reason, address
            offset $2) old))`,
    values: [uuids, keptRefusedLogins],
  });
}

/** These devices logged in at these times, which ends earlier refusals. */
async function closeRefusedLogins(db: Sql, letIn: [number, number][]): Promise<void> {
  await db.query({
    name: 'devices-close-refused-logins',
    text: `
      update refused_login r
         set is_open = false
        from unnest($1::bigint[], $2::bigint[]) as l (device_id, ts)
       where r.device_id = l.device_id and r.is_open and r.last_at <= ms_to_timestamp(l.ts)`,
    values: [letIn.map(([deviceId]) => deviceId), letIn.map(([, ts]) => ts)],
  });
}

type RefusedLoginRow = {
  reason: string;
  address: string;
  count: number;
  first_at: number;
  last_at: number;
};

/** Newest first. Null if the account neither has such a device nor had one within 30 days. */
async function findRefusedLogins(
  db: Sql,
  accountId: number,
  uuid: string,
): Promise<RefusedLoginRow[] | null> {
  const { rows } = await db.query<RefusedLoginRow | { reason: null }>(
    `
      select r.reason, r.address, r.count, r.first_at, r.last_at
        from (select from device where uuid = $2 and account_id = $1
              union all
              select from removed_uuid where uuid = $2 and account_id = $1) as known
        left join refused_login r on r.uuid = $2 and r.account_id = $1
       order by r.last_at desc, r.reason, r.address`,
    [accountId, uuid],
  );
  if (rows.length === 0) return null;
  return rows.filter((row): row is RefusedLoginRow => row.reason !== null);
}

type RemovedLoginRow = RefusedLoginRow & { uuid: string; name: string | null; removed_at: number };

/** Those of devices that the account removed within 30 days, newest first. */
async function findRemovedLogins(
  db: Sql,
  accountId: number,
  limit: number,
): Promise<RemovedLoginRow[]> {
  const { rows } = await db.query<RemovedLoginRow>(
    `
      select r.uuid, u.name, u.removed_at, r.reason, r.address, r.count, r.first_at, r.last_at
        from refused_login r
        join removed_uuid u on u.uuid = r.uuid and u.account_id = r.account_id
       where r.account_id = $1 and r.device_id is null
       order by r.last_at desc, r.uuid, r.reason, r.address
       limit $2`,
    [accountId, limit],
  );
  return rows;
}

/** A periodic task: deletes what is older than the retention. */
export async function forgetRefusedLogins(db: Sql, nowTs: WallMs): Promise<void> {
  const before = nowTs - refusedLoginDays * 86_400_000;
  await db.query('delete from refused_login where last_at < ms_to_timestamp($1)', [before]);
  await db.query('delete from removed_uuid where removed_at < ms_to_timestamp($1)', [before]);
}

/** `accountId`: the device's account, if known. `unknown`: no device has this uuid now. */
type LoginRefusal = {
  uuid: string;
  accountId?: number | undefined;
  reason: string;
  address?: string | undefined;
};

/** How many uuids with refused logins are remembered; the one refused longest ago is dropped first. */
const maxUuids = 20_000;
/** How many groups a uuid may have between two writes; further ones are dropped. */
const maxCounts = 8;
/** uuids in one write, and how many of one account while others wait. */
const writtenAtOnce = 500;
const perAccount = 100;
/** Time between two writes of one uuid, in milliseconds. */
const writtenForMs = 60_000;

type RefusalCount = Omit<RefusedLogins, 'uuid' | 'isOpen'>;
type OfUuid = {
  accountId: number | undefined;
  /** By reason and address. */
  counts: Map<string, RefusalCount>;
  writtenTs: number;
  letInTs: number;
  refusedTs: number;
};

/** Counts refused logins by uuid until they are written. Times are in ms. */
class RefusalCounts {
  readonly #waiting = new Set<string>();
  readonly #known = new LRUCache<string, OfUuid>({
    ...atMost(maxUuids),
    disposeAfter: (_, uuid, reason) => void (reason === 'evict' && this.#waiting.delete(uuid)),
  });

  add({ uuid, accountId, reason, address = '' }: LoginRefusal, ts: number): void {
    this.#add(uuid, accountId, { count: 1, firstTs: ts, lastTs: ts, reason, address });
  }

  /** When a login with the uuid was last refused; -Infinity if none is remembered. */
  refusedTs(uuid: string): number {
    return this.#known.peek(uuid)?.refusedTs ?? -Infinity;
  }

  /** The device logged in, which ends earlier refusals. */
  letIn(uuid: string, ts: number): void {
    const of = this.#known.peek(uuid);
    // A refusal in the same millisecond came after the token was accepted.
    if (of) of.letInTs = ts - 1;
  }

  /** Returns what is to be written now, and marks it as written. */
  take(nowTs: WallMs): RefusedLogins[] {
    return this.#pick(nowTs).flatMap((uuid) => {
      this.#waiting.delete(uuid);
      const of = this.#known.peek(uuid);
      if (!of) return [];
      const counts = [...of.counts.values()];
      of.counts.clear();
      of.writtenTs = nowTs;
      return counts.map((count) => ({ uuid, ...count, isOpen: count.lastTs > of.letInTs }));
    });
  }

  /** They could not be written: they wait again, and are due at once. */
  requeue(rows: RefusedLogins[]): void {
    for (const { uuid, isOpen: _, ...count } of rows) {
      this.#add(uuid, undefined, count);
      const of = this.#known.peek(uuid);
      if (of) of.writtenTs = -Infinity;
    }
  }

  #add(uuid: string, accountId: number | undefined, added: RefusalCount): void {
    const of = this.#known.get(uuid) ?? emptyOf(accountId);
    this.#known.set(uuid, of);
    of.accountId ??= accountId;
    of.refusedTs = Math.max(of.refusedTs, added.lastTs);
    const key = `${added.reason} ${added.address}`;
    const before = of.counts.get(key);
    if (!before && of.counts.size >= maxCounts) return;
    of.counts.set(key, before ? sumOf(before, added) : added);
    this.#waiting.add(uuid);
  }

  /** The uuids due now: first a few of each account, then the rest. */
  #pick(nowTs: WallMs): string[] {
    const perOwner = new Map<number | undefined, number>();
    const rest: string[] = [];
    const picked: string[] = [];
    for (const uuid of this.#waiting) {
      const { accountId, writtenTs = 0 } = this.#known.peek(uuid) ?? {};
      if (nowTs - writtenTs < writtenForMs) continue;
      const before = perOwner.get(accountId) ?? 0;
      perOwner.set(accountId, before + 1);
      (before < perAccount ? picked : rest).push(uuid);
    }
    return [...picked, ...rest].slice(0, writtenAtOnce);
  }
}

const emptyOf = (accountId: number | undefined): OfUuid => ({
  accountId,
  counts: new Map(),
  writtenTs: -Infinity,
  letInTs: -Infinity,
  refusedTs: -Infinity,
});

function sumOf(before: RefusalCount, { count, lastTs }: RefusalCount): RefusalCount {
  return { ...before, count: before.count + count, lastTs: Math.max(before.lastTs, lastTs) };
}

/** Notified of every login of a device; stores refused ones for the device's owner. */
export type LoginWatch = {
  refused(login: LoginRefusal): void;
  letIn(device: { deviceId: number; uuid: string }): void;
};

type LoginWatchDeps = {
  db: Sql;
  clock: Clock;
  /** A write failed; the next one repeats it. */
  onError: (error: unknown) => void;
  intervalMs?: number;
};

type RunningLoginWatch = LoginWatch & {
  /** Writes what is due. */
  flush(): Promise<void>;
  close(): Promise<void>;
};

/** How many devices that logged in may wait to be written. */
const maxLetIn = 50_000;
const closedAtOnce = 1_000;
/** Until this long after a login, another process may still write a refusal from before it. */
const lateMs = writtenForMs + 15_000;

/** A device's newest login, and the first one that the same write reports. */
type LetIn = { ts: number; sinceTs: number; isWritten: boolean };

/**
 * Anybody who knows a uuid can have its logins refused at will. So refusals are counted, a uuid is written at most once
 * a minute, and each write takes few uuids, with fair shares for the accounts (`RefusalCounts`).
 */
export function startLoginWatch(deps: LoginWatchDeps): RunningLoginWatch {
  const { db, clock, onError, intervalMs = 2_000 } = deps;
  const refusals = new RefusalCounts();
  const letIn = new LRUCache<number, LetIn>(atMost(maxLetIn));

  function noteLetIn({ deviceId, uuid }: { deviceId: number; uuid: string }): void {
    const ts = clock();
    const before = letIn.get(deviceId);
    // Over HTTP every request is a login: many in a row become one write, unless one was refused between them.
    if (before && (!before.isWritten || refusals.refusedTs(uuid) < before.ts)) before.ts = ts;
    else letIn.set(deviceId, { ts, sinceTs: ts, isWritten: false });
    refusals.letIn(uuid, ts);
  }

  async function writeRefused(): Promise<void> {
    const rows = refusals.take(clock());
    if (rows.length === 0) return;
    try {
      await addRefusedLogins(db, rows);
    } catch (error) {
      refusals.requeue(rows);
      throw error;
    }
  }

  /** Writes each twice: after this process's refusals are stored, and when those of other processes must be. */
  async function writeLetIn(): Promise<void> {
    const nowTs = clock();
    const due = [...letIn.entries()].filter(
      ([, { sinceTs, isWritten }]) => nowTs - sinceTs >= (isWritten ? lateMs : intervalMs),
    );
    for (let from = 0; from < due.length; from += closedAtOnce) {
      const some = due.slice(from, from + closedAtOnce);
      await closeRefusedLogins(
        db,
        some.map(([deviceId, { ts }]) => [deviceId, ts - 1]),
      );
      for (const [deviceId, login] of some)
        if (login.isWritten) letIn.delete(deviceId);
        else login.isWritten = true;
    }
  }

  async function write(): Promise<void> {
    await writeRefused();
    await writeLetIn();
  }

  let writing = Promise.resolve();
  const flush = () => (writing = writing.then(write).catch(onError));
  const timer = setInterval(() => void flush(), intervalMs);
  timer.unref();

  return {
    refused: (login) => refusals.add(login, clock()),
    letIn: noteLetIn,
    flush,
    async close() {
      clearInterval(timer);
      await flush();
    },
  };
}

const messages: Record<(typeof refusalReasons)[number], string> = {
  'wrong-token': 'The password is not a token of this device.',
  'retired-token': 'The password is an earlier token of this device, which is no longer valid.',
  'device-removed': 'The device was removed.',
  'account-disabled': 'The account is disabled.',
  'too-many-connects': 'The device reconnected too often and was refused for a moment.',
  'too-many-connections': "The account's quota connections was used up.",
  'foreign-will': 'The topic of its will message is outside devices/<uuid>/up/.',
  'no-client-identifier':
    'It has no client identifier but asks for a persistent session (clean session 0).',
};

/** Why a device cannot log in. */
export function refusedLoginsRoute({ db }: { db: Sql }): Route {
  return defineRoute({
    name: 'listRefusedLogins',
    scope: 'devices:read',
    method: 'get',
    path: '/v2/devices/{deviceAuthUuid}/refused-logins',
    summary: "List why a device's logins were refused",
    description:
      "Refused logins with the device's uuid, grouped by reason and address, newest first. The " +
      'newest 16 groups are kept for 30 days, even after the device is removed. A refusal ' +
      'appears here after some seconds, at most once a minute per device. Anyone who knows a ' +
      'uuid can cause refused logins.',
    tag: 'Devices',
    auth: 'account',
    params: DeviceParams,
    response: RefusedLoginList,
    errors: [404],
    handler: async ({ account, params, request }) => {
      const rows = await findRefusedLogins(db, account.accountId, params.deviceAuthUuid);
      if (rows === null) throw noSuchDevice();
      return { refusedLogins: rows.map(toRefusedLogin), timestamp: request.now() };
    },
  });
}

/** Removed devices that still try to log in, because nobody switched them off. */
export function removedLoginsRoute({ db }: { db: Sql }): Route {
  return defineRoute({
    name: 'listRefusedLoginsOfRemoved',
    scope: 'devices:read',
    // A removed device has no labels.
    isOfWholeAccount: true,
    method: 'get',
    path: '/v2/devices/removed/refused-logins',
    summary: 'List removed devices that still try to log in',
    description:
      'Refused logins of all devices removed within the last 30 days, newest first. For a ' +
      'single device, and for how refusals are grouped, see `listRefusedLogins`.',
    tag: 'Devices',
    auth: 'account',
    query: RemovedLoginsQuery,
    response: RemovedLoginList,
    errors: [],
    handler: async ({ account, query, request }) => {
      const rows = await findRemovedLogins(db, account.accountId, query.limit);
      const refusedLogins = rows.map((row) => ({
        ...toRefusedLogin(row),
        deviceAuthUuid: row.uuid,
        ...(row.name === null ? {} : { name: row.name }),
        removedTs: row.removed_at,
      }));
      return { refusedLogins, timestamp: request.now() };
    },
  });
}

function toRefusedLogin(row: RefusedLoginRow): RefusedLogin {
  const { reason, address, count, first_at, last_at } = row;
  return {
    timestamp: last_at,
    firstTs: first_at,
    count,
    reason,
    message: messages[reason as keyof typeof messages] ?? reason,
    ...(address === '' ? {} : { address }),
  };
}
