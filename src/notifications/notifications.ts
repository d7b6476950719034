import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import type { MessageQuotas, NotificationSettings } from './settings.ts';
import type { AlarmPort } from './alarm-port.ts';
import { startDeliverySide, type ContactOptions } from './delivery-side.ts';
import type { AttemptState } from './deliver.ts';
import { type Drivers, openDrivers } from './channels/open.ts';
import { enqueueNotifications } from './enqueue.ts';
import { deliverTask, takeOver } from './old-jobs.ts';
import type { NotificationLog } from './log.ts';
import { createNumberRule } from './phone-number.ts';
import { freeAbandonedJobs } from '../db/jobs.ts';
import { forgetCounts, forgetOutcomes } from './queries.ts';
import type { NewNotification } from '../contract/notification.ts';
import type { MessageChannel } from './sort-out.ts';
import { dropPlanned } from './planned.ts';
import { tellOver, type ClosedAlarm } from './tell-over.ts';
import { tell, type Ask, type Told } from './tell.ts';
import { migrateWorker, startWorker } from './worker.ts';

export type Notifications = {
  /** Writes messages within the transaction of their event. */
  enqueue: (tx: Sql, notifications: Iterable<NewNotification>) => Promise<void>;
  /** Queues what people are told of alarms and notices within the caller's transaction. */
  tell: (tx: Sql, asks: readonly Ask[]) => Promise<Told[]>;
  /** Drops what is planned for alarms that were acknowledged, snoozed or closed. */
  dropPlanned: (tx: Sql, alarmIds: readonly number[]) => Promise<void>;
  /** Tells that alarms are over, whoever is to hear of it. */
  tellOver: (tx: Sql, closed: readonly ClosedAlarm[]) => Promise<void>;
  /** When this process last looked for messages that are due, ms; null: not yet. */
  lastLookTs: () => number | null;
  /** Lets deliveries under way end; what is not delivered stays in the database. */
  close: () => Promise<void>;
};

export type NotificationsOptions = {
  db: Database;
  connectionString: string;
  config: NotificationSettings;
  /** What an account may send: its own, or the configuration's. */
  quotasOf: (accountId: number) => MessageQuotas;
  /** No account needs the operator's permission for SMS. */
  isSmsForAll: boolean;
  /** How e-mail and webhooks of accounts are reached. */
  contacts: ContactOptions;
  /** What messages need of the alarms that they are about. */
  alarms: AlarmPort;
  log: NotificationLog;
  clock: () => number;
  /** The time by which messages may be forgotten and given up, ms; null: not now. Absent: `clock`. */
  believedTs?: () => number | null;
  /** Stand in for those that the configuration names. */
  drivers?: Drivers;
  /** Told how each attempt ended, for whoever counts. */
  onOutcome?: (outcome: { kind: MessageChannel; state: AttemptState }) => void;
};

const dayMs = 86_400_000;
const tendIntervalMs = 60_000;
// Longer than any driver's timeout.
const abandonedAfterMs = 120_000;

/**
 * Prepares the job tables and starts delivering in this process. To be awaited before anything is
 * enqueued.
 */
export async function startNotifications(options: NotificationsOptions): Promise<Notifications> {
  const { db, connectionString, config, quotasOf, isSmsForAll, log, clock, onOutcome } = options;
  const { believedTs = clock } = options;
  const { concurrency, maxAttempts, pollIntervalMs, retentionDays } = config;
  tellOfDailyQuota(config, log);
  const isAllowedNumber = createNumberRule(config.sms.allowedPrefixes);
  await migrateWorker(connectionString, log);
  const drivers = options.drivers ?? (await openDrivers(config, { log, clock }));
  const worker = startWorker({
    connectionString,
    concurrency: 1,
    pollIntervalMs,
    log,
    tasks: {
      [deliverTask]: (payload) =>
        takeOver(db, (payload as { notificationId: number }).notificationId, clock()),
    },
  });
  const delivering = await startDeliverySide({
    db,
    connectionString,
    contacts: options.contacts,
    drivers,
    isAllowedNumber,
    alarms: options.alarms,
    maxAttempts,
    pollIntervalMs,
    concurrency,
    timeoutMs: longestTimeoutMs(config),
    log,
    clock,
    believedTs,
    onOutcome,
    channels: channelsOf(config),
  });
  const ownChannels: MessageChannel[] = [
    ...(config.push || options.drivers ? (['push'] as const) : []),
    // A log counts: whoever tries the service out wants alarms to go on as if somebody had been notified.
    'sms',
    ...(options.contacts.email ? (['email'] as const) : []),
    'webhook',
  ];
  const rules = { quotasOf, isAllowedNumber, isSmsForAll };
  const tend = async () => {
    await delivering.tend();
    await freeAbandonedJobs(db, abandonedAfterMs);
    const nowTs = believedTs();
    if (nowTs === null) return;
    await forgetOutcomes(db, nowTs - retentionDays * dayMs);
    await forgetCounts(db, nowTs);
  };
  const timer = setInterval(() => {
    tend().catch((error: unknown) =>
      log.warn(
        { event: 'notifications.unkept', err: error },
        'Old notifications could not be deleted, or abandoned ones not released.',
      ),
    );
  }, tendIntervalMs);
  return {
    enqueue: (tx, notifications) =>
      enqueueNotifications(tx, notifications, { ...rules, nowMs: clock() }),
    tell: (tx, asks) => tell(tx, asks, { ...rules, ownChannels, nowMs: clock() }),
    lastLookTs: delivering.lastLookTs,
    dropPlanned,
    tellOver: (tx, closed) => tellOver(tx, closed, { quotasOf, nowMs: clock() }),
    close: async () => {
      clearInterval(timer);
      await Promise.all([worker.close(), delivering.close()]);
      await Promise.all([drivers.push.close(), drivers.sms.close()]);
    },
  };
}

const longestTimeoutMs = ({ push, sms }: NotificationSettings): number =>
  Math.max(push?.timeoutMs ?? 0, sms.driver === 'log' ? 0 : sms.timeoutMs);

/** Of those that the operator configures; a log reaches nobody, and has a name of its own. */
function channelsOf({ push, sms }: NotificationSettings): string[] {
  return [...(push ? ['push'] : []), sms.driver === 'log' ? 'sms-log' : 'sms'];
}

/** An older name of `quotas.messagesPerDay`, which counted SMS too: `readSettings` takes it for that. */
function tellOfDailyQuota({ dailyQuota }: NotificationSettings, log: NotificationLog): void {
  if (dailyQuota === undefined) return;
  log.info(
    { event: 'notifications.quota-renamed', messagesPerDay: dailyQuota },
    'The setting notifications.dailyQuota was renamed: it sets quotas.messagesPerDay.',
  );
}
