import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import type { OutboxConfig } from './settings.ts';
import { deliver } from './deliver.ts';
import type { Delivery } from './deliver.ts';
import { openDrivers } from './drivers/open.ts';
import type { Drivers } from './drivers/open.ts';
import { deliverTask, enqueueNotifications } from './enqueue.ts';
import type { OutboxLog } from './log.ts';
import { forgetOutcomes, freeAbandonedJobs } from './queries.ts';
import type { NewNotification } from './schema.ts';
import { migrateWorker, startWorker } from './worker.ts';

export type Outbox = {
  /** Writes push and SMS within the transaction of their event. */
  enqueue: (tx: Sql, notifications: readonly NewNotification[]) => Promise<void>;
  /** Lets deliveries under way end; what is not delivered stays in the database. */
  close: () => Promise<void>;
};

export type OutboxOptions = {
  db: Database;
  connectionString: string;
  config: OutboxConfig;
  log: OutboxLog;
  clock: () => number;
  /** Stand in for those that the configuration names. */
  drivers?: Drivers;
  onOutcome?: Delivery['onOutcome'];
};

const dayMs = 86_400_000;
const tendIntervalMs = 60_000;
// Longer than any driver's timeout.
const abandonedAfterMs = 120_000;

/**
 * Prepares the job tables and starts delivering in this process. To be awaited before anything is
 * enqueued.
 */
export async function startOutbox(options: OutboxOptions): Promise<Outbox> {
  const { db, connectionString, config, log, clock, onOutcome } = options;
  const { dailyQuota, concurrency, maxAttempts, pollIntervalMs, retentionDays } = config;
  await migrateWorker(connectionString, log);
  const drivers = options.drivers ?? (await openDrivers(config, { log, clock }));
  const delivery: Delivery = { db, drivers, maxAttempts, clock, ...(onOutcome && { onOutcome }) };
  const worker = startWorker({
    connectionString,
    concurrency,
    pollIntervalMs,
    log,
    tasks: {
      [deliverTask]: (payload) =>
        deliver(delivery, (payload as { notificationId: number }).notificationId),
    },
  });
  const tend = async () => {
    await freeAbandonedJobs(db, abandonedAfterMs);
    await forgetOutcomes(db, clock() - retentionDays * dayMs);
  };
  const timer = setInterval(() => {
    tend().catch((error: unknown) => log.warn({ err: error }, 'The outbox could not be tended'));
  }, tendIntervalMs);
  return {
    enqueue: (tx, notifications) =>
      enqueueNotifications(tx, notifications, { dailyQuota, nowMs: clock() }),
    close: async () => {
      clearInterval(timer);
      await worker.close();
      await Promise.all([drivers.push.close(), drivers.sms.close()]);
    },
  };
}
