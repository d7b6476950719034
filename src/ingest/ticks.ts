import type { Delivery, DeviceIdentity } from '../contract/uplink.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { type Rate, TokenBucket } from '../lib/token-bucket.ts';
import { pause } from '../lib/wait.ts';
import type { Log } from '../log/logger.ts';
import type { Clock, MonotonicClock, WallMs } from '../lib/clock-readings.ts';

type TicksDeps = {
  db: Sql;
  /** The service's time, ms. */
  clock: Clock;
  /** A monotonic clock, ms. */
  monotonicClock: MonotonicClock;
  tick(device: DeviceIdentity, delivery: Delivery): void;
  /** Whether this process handles the device's tick, because the device's messages arrive here or nowhere. */
  isHere(device: DueDevice): boolean;
  /** Whether it is known if somebody listened to the device when it fell due. If not, its tick waits. */
  isHeardOf(device: DueDevice): boolean;
  /** Whether the account sends too many events at the moment, so that its ticks wait. */
  isHeld(accountId: number): boolean;
  log: Log;
  observe?: TickObserver | undefined;
};

type Ticks = {
  /** Begins no further tick. Ticks that wait for their commit are left to ingest. */
  close(): Promise<void>;
};

/**
 * Evaluates what time alone triggers. What is due is a row in the database. Whoever finds it queues a tick behind the
 * messages of its device, and the transaction that stores the tick moves the row on or removes it. Two processes may
 * find the same row without harm: the second one finds nothing due.
 */
export function startTicks(deps: TicksDeps, changed: Partial<TickPace> = {}): Ticks {
  const pace = { ...usualTickPace, ...changed };
  const { db, clock, log, observe } = deps;
  const stopping = new AbortController();
  const feed = createTickFeed(pace, deps, putOffRefused);
  let isAway = false;

  async function look(): Promise<number> {
    feed.beginLook();
    const nowTs = clock();
    const anybodysTs = nowTs - pace.othersAfterMs;
    const limit = pace.atOnce;
    const anybodys = await listDue(db, { toTs: anybodysTs, limit });
    const fresh = await listDue(db, { fromTs: anybodysTs, toTs: nowTs, limit });
    const oldestTs = anybodys[0]?.dueTs ?? fresh[0]?.dueTs ?? nowTs;
    observe?.behind(Math.max(0, nowTs - oldestTs) / 1_000);
    const own = fresh.filter(deps.isHere);
    const others = anybodys.length < limit ? anybodys : await lookAtEach(anybodysTs, anybodys);
    const mayRun = (due: DueDevice) => !deps.isHeld(due.accountId) && deps.isHeardOf(due);
    return feed.add([...others, ...own].filter(mayRun));
  }

  /** Much is due: reads some of each account in turn, and nothing of accounts that have to wait. */
  async function lookAtEach(toTs: number, first: DueDevice[]): Promise<DueDevice[]> {
    const but = [...new Set(first.map(({ accountId }) => accountId))].filter(deps.isHeld);
    const some = await listDueOfEach(db, { toTs, perAccount: pace.ofAccountAtOnce, but });
    const accounts = Map.groupBy(some, ({ accountId }) => accountId).size;
    const perAccount = Math.floor(pace.atOnce / Math.max(1, accounts));
    if (perAccount <= pace.ofAccountAtOnce) return inTurn(some);
    return inTurn(await listDueOfEach(db, { toTs, perAccount, but }));
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      let added = 0;
      try {
        added = await look();
        isAway = false;
      } catch (err) {
        if (!isAway)
          log.warn(
            { event: 'ticks.unread', err },
            'The devices whose timed conditions are due could not be read; the service will try again every second.',
          );
        isAway = true;
      }
      // While much more is due, it is read as soon as most of this is done.
      if (added > pace.atOnce / 4) await feed.whenLow();
      else await pause(pace.lookMs, stopping.signal);
    }
  }

  async function putOffRefused(device: DueDevice, err: unknown): Promise<void> {
    log.error(
      { event: 'tick.put-off', err, device: device.uuid },
      "The result of a device's timed conditions could not be stored; the service will try again later.",
    );
    // If this cannot be written either, the next look tries the tick again.
    await putOffTick(db, device.deviceId, clock()).catch(() => undefined);
  }

  const running = run();
  return {
    async close() {
      stopping.abort();
      feed.stop();
      await running;
    },
  };
}

/** The first device of each account, then the second of each, and so on. */
function inTurn(devices: DueDevice[]): DueDevice[] {
  const accounts = [...Map.groupBy(devices, ({ accountId }) => accountId).values()];
  const most = Math.max(0, ...accounts.map(({ length }) => length));
  return Array.from({ length: most }, (_, n) => accounts.flatMap((its) => its[n] ?? [])).flat();
}

type TickPace = {
  /** The pause between two looks at what is due. */
  lookMs: number;
  /** How much later ticks of another process's devices are taken over. */
  othersAfterMs: number;
  /** How many devices one look takes, and how many of one account while there are more. */
  atOnce: number;
  ofAccountAtOnce: number;
  /** How many ticks may wait for their commit, and how many a second may begin. */
  maxUnderWay: number;
  perSecond: number;
  /** The pause between two portions. */
  portionMs: number;
};

/**
 * Messages wait for the event loop and for other commits. So ticks come in small portions, fifty every 20 ms, and no
 * faster than a large fleet needs. Portions five times as large and as rare doubled the slowest acknowledgement times
 * (`npm run bench:ticks`).
 */
const usualTickPace: TickPace = {
  lookMs: 1_000,
  othersAfterMs: 5_000,
  atOnce: 2_000,
  ofAccountAtOnce: 200,
  maxUnderWay: 100,
  perSecond: 2_500,
  portionMs: 20,
};

export type TickObserver = {
  /** What became of a tick. */
  done(outcome: 'stored' | 'left' | 'put-off'): void;
  /** How long the oldest tick has been due, in seconds; 0: none is. */
  behind(seconds: number): void;
};

type TickFeedDeps = {
  /** A monotonic clock, ms. */
  monotonicClock: MonotonicClock;
  tick(device: DeviceIdentity, delivery: Delivery): void;
  observe?: Pick<TickObserver, 'done'> | undefined;
};

/** Passes ticks to ingest, a few at a time. */
type TickFeed = {
  /** A read begins; its result goes to the next `add`. */
  beginLook(): void;
  /** Adds devices that it does not have, nor had since the read began. Returns how many it added. */
  add(devices: DueDevice[]): number;
  /** Resolves when few ticks wait. */
  whenLow(): Promise<void>;
  /** Passes on no more ticks. */
  stop(): void;
};

function createTickFeed(
  { maxUnderWay, perSecond, portionMs, atOnce }: TickPace,
  { monotonicClock, tick, observe }: TickFeedDeps,
  putOff: (device: DueDevice, error: unknown) => Promise<void>,
): TickFeed {
  let waiting: DueDevice[] = [];
  let at = 0;
  /** Devices that wait or have a tick under way. */
  const known = new Set<number>();
  /** Devices whose tick ended since the current read began: the read may still show them as due. */
  let ended = new Set<number>();
  let underWay = 0;
  const rate: Rate = { perSecond, burst: maxUnderWay };
  const credit = new TokenBucket(rate, monotonicClock());
  let timer: NodeJS.Timeout | undefined;
  let onLow = () => {};
  let isStopped = false;

  const left = () => waiting.length - at;
  const isLow = () => isStopped || left() < atOnce / 4;

  function bring(): void {
    if (isStopped) return;
    const monotonicMs = monotonicClock();
    while (left() > 0 && underWay < maxUnderWay && credit.level(rate, monotonicMs) >= 1) {
      credit.take(1, rate, monotonicMs);
      underWay += 1;
      const due = waiting[at++] as DueDevice;
      const { deviceId, uuid, accountId, connectorId } = due;
      tick({ deviceId, uuid, accountId, connectorId }, deliveryOf(due));
    }
    if (at > atOnce) {
      waiting = waiting.slice(at);
      at = 0;
    }
    if (isLow()) onLow();
    if (left() > 0) timer ??= setTimeout(onPortion, portionMs).unref();
  }

  function onPortion(): void {
    timer = undefined;
    bring();
  }

  function end(device: DueDevice, outcome: Parameters<TickObserver['done']>[0]): void {
    known.delete(device.deviceId);
    ended.add(device.deviceId);
    underWay -= 1;
    observe?.done(outcome);
  }

  function deliveryOf(device: DueDevice): Delivery {
    return {
      isWithdrawn: false,
      stored: () => end(device, 'stored'),
      failed(error) {
        if (isPassing(error)) end(device, 'left');
        else void putOff(device, error).finally(() => end(device, 'put-off'));
      },
    };
  }

  return {
    beginLook: () => void (ended = new Set()),
    add(devices) {
      let added = 0;
      for (const device of devices) {
        if (known.has(device.deviceId) || ended.has(device.deviceId)) continue;
        known.add(device.deviceId);
        waiting.push(device);
        added += 1;
      }
      bring();
      return added;
    },
    whenLow() {
      return new Promise((resolve) => {
        onLow = resolve;
        if (isLow()) resolve();
      });
    },
    stop() {
      isStopped = true;
      clearTimeout(timer);
      onLow();
    },
  };
}

/** Whether the next look tries the tick again: the database is away, or another process has the device. */
function isPassing(error: unknown): boolean {
  return error instanceof DomainError && ['unavailable', 'device-gone'].includes(error.code);
}

/** A device that is due, since `dueTs` (ms). `isConnected`: to any process, as far as is known. */
type DueDevice = DeviceIdentity & {
  connectorId: number;
  dueTs: number;
  isConnected: boolean;
};

type Row = {
  device_id: number;
  uuid: string;
  account_id: number;
  connector_id: number;
  due_at: number;
  connected: boolean;
};

const columns = `
  due.device_id, d.uuid, due.account_id, due.due_at,
  coalesce(p.connector_id, d.connector_id) as connector_id, coalesce(p.connected, false) as connected`;

const joined = `
  join device d on d.id = due.device_id
  left join presence p on p.device_id = due.device_id`;

const next = 'coalesce(due.retry_at, due.due_at)';

/** A removed device has no row. One of a removed account may still have one, and is skipped. */
const isThere = `
  not exists (select from account a where a.id = due.account_id and a.removed_at is not null)`;

/** Devices that are due from `fromTs` (absent: ever) up to `toTs`, the longest due first. */
async function listDue(
  db: Sql,
  { fromTs, toTs, limit }: { fromTs?: number; toTs: number; limit: number },
): Promise<DueDevice[]> {
  const { rows } = await db.query<Row>(
    `select ${columns}
       from (
         select * from device_due due
          where ${next} > ${fromTs === undefined ? "'-infinity'" : 'ms_to_timestamp($3)'}
            and ${next} <= ms_to_timestamp($1)
            and ${isThere}
          order by ${next}
          limit $2) due
       ${joined}
      order by ${next}`,
    fromTs === undefined ? [toTs, limit] : [toTs, limit, fromTs],
  );
  return rows.map(toDevice);
}

/**
 * The same for each account but these, with at most `perAccount` of one, so that an account with much due does not hide
 * the others. Walks from account to account in the index.
 */
async function listDueOfEach(
  db: Sql,
  { toTs, perAccount, but }: { toTs: number; perAccount: number; but: number[] },
): Promise<DueDevice[]> {
  const { rows } = await db.query<Row>(
    `with recursive owner as (
       (select account_id from device_due order by account_id limit 1)
       union all
       select following.account_id
         from owner
        cross join lateral (
          select account_id from device_due
           where account_id > owner.account_id
           order by account_id limit 1) following
     )
     select ${columns}
       from owner
      cross join lateral (
        select * from device_due due
         where due.account_id = owner.account_id
           and ${next} <= ms_to_timestamp($1)
           and ${isThere}
         order by ${next}
         limit $2) due
       ${joined}
      where owner.account_id <> all($3::bigint[])
      order by ${next}`,
    [toTs, perAccount, but],
  );
  return rows.map(toDevice);
}

/** Postpones a tick that could not be stored: by a minute, then two, up to an hour. */
async function putOffTick(db: Sql, deviceId: number, nowTs: WallMs): Promise<void> {
  await db.query(
    `update device_due
        set failures = least(failures + 1, 10),
            retry_at = ms_to_timestamp($2)
                     + least(interval '1 hour', interval '1 minute' * (2 ^ failures))
      where device_id = $1`,
    [deviceId, nowTs],
  );
}

function toDevice(row: Row): DueDevice {
  return {
    deviceId: row.device_id,
    uuid: row.uuid,
    accountId: row.account_id,
    connectorId: row.connector_id,
    dueTs: row.due_at,
    isConnected: row.connected,
  };
}
