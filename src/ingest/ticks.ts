import type { Delivery, DeviceIdentity } from '../contract/uplink.ts';
import type { Sql } from '../db/sql.ts';
import { pause } from '../lib/wait.ts';
import type { Log } from '../log/logger.ts';
import { createTickFeed } from './ticks/feed.ts';
import { type TickObserver, type TickPace, usualTickPace } from './ticks/pace.ts';
import { type DueDevice, listDue, listDueOfEach, putOffTick } from './ticks/queries.ts';

export type TicksDeps = {
  db: Sql;
  /** The service's time, ms. */
  clock: () => number;
  /** Milliseconds that only go forward. */
  nowMs: () => number;
  tick(device: DeviceIdentity, delivery: Delivery): void;
  /** Whether the device's tick is this process's, as messages of the device come here or nowhere. */
  isHere(device: DueDevice): boolean;
  /** Whether it is known if somebody listened to the device when it fell due; if not its tick waits. */
  isHeardOf(device: DueDevice): boolean;
  /** Whether the account brings too many events for now: its ticks wait. */
  isHeld(accountId: number): boolean;
  log: Log;
  observe?: TickObserver | undefined;
};

export type Ticks = {
  /** Begins no further tick; those that wait for their commit are ingest's. */
  close(): Promise<void>;
};

/**
 * Brings devices what time alone brings. What is due stands in the database: whoever finds it puts a tick
 * behind the messages of its device, and the transaction that stores it moves the row on or removes it. Two
 * processes that find the same one do no harm: the second one finds nothing due.
 */
export function startTicks(deps: TicksDeps, pace: TickPace = usualTickPace): Ticks {
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

  /** Much is due: some of each account in turn, and nothing of those that have to wait. */
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
            'Devices whose timed conditions are due could not be read; it is retried every second.',
          );
        isAway = true;
      }
      // While there is much more it is read as soon as most of this is done.
      if (added > pace.atOnce / 4) await feed.whenLow();
      else await pause(pace.lookMs, stopping.signal);
    }
  }

  async function putOffRefused(device: DueDevice, err: unknown): Promise<void> {
    log.error(
      { event: 'tick.put-off', err, device: device.uuid },
      "What a device's timed conditions completed could not be stored; it is retried later.",
    );
    // Where that cannot be written either it is tried again with the next look.
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

/** The first of each account, then the second of each, and so on. */
function inTurn(devices: DueDevice[]): DueDevice[] {
  const accounts = [...Map.groupBy(devices, ({ accountId }) => accountId).values()];
  const most = Math.max(0, ...accounts.map(({ length }) => length));
  return Array.from({ length: most }, (_, n) => accounts.flatMap((its) => its[n] ?? [])).flat();
}
