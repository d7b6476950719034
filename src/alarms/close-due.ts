import type { Bus } from '../bus/bus.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { loadDevices } from './load.ts';
import type { Telling } from './ports.ts';
import { closeDue } from './rules/close.ts';
import { beginDraft, type RuleOptions } from './rules/draft.ts';
import { saveDrafts, type Drafted } from './save-drafts.ts';

export type ClosingOptions = {
  db: Database;
  bus: Bus;
  clock: () => number;
  telling: Telling;
  rules: RuleOptions;
  /** 1 s. */
  intervalMs?: number;
  onError: (error: unknown) => void;
};

/** Devices in one transaction. */
const devicesAtOnce = 100;

/** Held while one process closes: others leave it to that one. */
const closingLock = 7208;

/**
 * Closes alarms when their time is over: what `actions.keepMs` keeps, and those of reported events. A firing
 * that comes before does not wait for it (`decide`).
 */
export function startClosing(options: ClosingOptions): { close(): Promise<void> } {
  const { intervalMs = 1_000, onError } = options;
  let running = Promise.resolve();
  let isClosed = false;
  let isRunning = false;
  async function run(): Promise<void> {
    isRunning = true;
    try {
      while (!isClosed && (await closeSome(options)) === devicesAtOnce);
    } catch (error) {
      onError(error);
    } finally {
      isRunning = false;
    }
  }
  const timer = setInterval(() => {
    if (!isRunning) running = run();
  }, intervalMs);
  timer.unref();
  return {
    async close() {
      isClosed = true;
      clearInterval(timer);
      await running;
    },
  };
}

/** Gives of how many devices it closed alarms. */
export async function closeSome({
  db,
  bus,
  clock,
  telling,
  rules,
}: Omit<ClosingOptions, 'onError'>): Promise<number> {
  const nowMs = clock();
  if ((await listDue(db, nowMs)).length === 0) return 0;
  const drafted = await db.transaction(async (tx) => {
    const { rows } = await tx.query<{ held: boolean }>(
      'select pg_try_advisory_xact_lock($1) as held',
      [closingLock],
    );
    if (rows[0]?.held !== true) return new Map<number, Drafted>();
    const loaded = await loadDevices(tx, await listDue(tx, nowMs));
    const found = [...loaded].map(([deviceId, device]): [number, Drafted] => {
      const draft = beginDraft(device, { options: rules, nowTs: nowMs, asks: [] });
      closeDue(draft, nowMs);
      return [deviceId, { draft, device, ts: nowMs }];
    });
    await saveDrafts(tx, new Map(found), telling);
    return new Map(found);
  });
  const closed = [...drafted.values()].flatMap(({ draft }) => draft.closed);
  const accountIds = [...new Set(closed.map(({ alarm }) => alarm.device.accountId))];
  if (accountIds.length > 0) bus.publish('events', { accountIds, deviceIds: [...drafted.keys()] });
  return drafted.size;
}

async function listDue(sql: Sql, nowMs: number): Promise<number[]> {
  const { rows } = await sql.query<{ deviceId: number }>({
    name: 'alarms-due-to-close',
    text: `
      select distinct device_id as "deviceId"
        from (select device_id
                from alarm
               where closed_at is null
                 and (ends_at is not null or expires_at is not null)
                 and least(ends_at, expires_at) <= ms_to_timestamp($1)
               order by least(ends_at, expires_at)
               limit ${devicesAtOnce}) as due`,
    values: [nowMs],
  });
  return rows.map(({ deviceId }) => deviceId);
}
