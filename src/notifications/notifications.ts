import { randomUUID } from 'node:crypto';
import type { NewNotification } from '../contract/actions.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import type { PostOptions } from './channels/channel.ts';
import { emailDriver } from './channels/email.ts';
import { type Drivers, openDrivers } from './channels/open.ts';
import { hookDriver } from './channels/webhook.ts';
import {
  type AttemptState,
  type ContactKeys,
  deliver,
  type DeliveryDeps,
  type FindEventId,
  listenForMessages,
  startDispatcher,
} from './deliver.ts';
import {
  type Ask,
  type ClosedAlarm,
  enqueueNotifications,
  notify,
  notifyResolved,
  type NotifyResult,
} from './enqueue.ts';
import { createUndeliveredLog, type NotificationLog } from './log.ts';
import { takeOldMessages } from './old-jobs.ts';
import {
  dropPlanned,
  endAnnouncement,
  forgetRecipients,
  giveUpOld,
  queuePlanned,
} from './outbox.ts';
import {
  type AlarmPort,
  createNumberRule,
  dueChannel,
  forgetProcess,
  type MessageChannel,
  type NumberRule,
  announceChannels,
} from './recipients.ts';
import { forgetCounts, forgetOutcomes } from './routes.ts';
import type { MessageQuotas, NotificationSettings } from './settings.ts';
import type { Clock, WallMs } from '../lib/clock-readings.ts';

export type Notifications = {
  /** Writes messages in the transaction of their event. */
  enqueue: (tx: Sql, notifications: Iterable<NewNotification>) => Promise<void>;
  /** Queues messages about alarms and notices in the caller's transaction. */
  notify: (tx: Sql, asks: readonly Ask[]) => Promise<NotifyResult[]>;
  /** Drops planned messages of alarms that were acknowledged, snoozed or closed. */
  dropPlanned: (tx: Sql, alarmIds: readonly number[]) => Promise<void>;
  /** Queues the message that alarms are over, for everybody who should receive it. */
  notifyResolved: (tx: Sql, closed: readonly ClosedAlarm[]) => Promise<void>;
  /** When this process last looked for due messages, ms; null if it has not yet. */
  lastLookTs: () => number | null;
  /** Waits for deliveries under way; what is not delivered stays in the database. */
  close: () => Promise<void>;
};

export type NotificationsOptions = {
  db: Database;
  connectionString: string;
  config: NotificationSettings;
  /** What an account may send: its own limits, or the configuration's. */
  quotasOf: (accountId: number) => MessageQuotas;
  /** Accounts need no permission from the operator to send SMS. */
  isSmsForAll: boolean;
  /** How the e-mail addresses and webhooks of accounts are reached. */
  contacts: ContactOptions;
  /** What messages need from the alarms that they are about. */
  alarms: AlarmPort;
  log: NotificationLog;
  clock: Clock;
  /** The time to use for deleting and giving up messages, ms; null if the clock is in doubt. Default: `clock`. */
  believedTs?: () => WallMs | null;
  /** Replaces the drivers that the configuration names. */
  drivers?: Drivers;
  /** Called with the outcome of each attempt, for metrics. */
  onOutcome?: (outcome: { kind: MessageChannel; state: AttemptState }) => void;
};

const dayMs = 86_400_000;
const tendIntervalMs = 60_000;

/** Starts delivering in this process. Await it before anything is enqueued. */
export async function startNotifications(options: NotificationsOptions): Promise<Notifications> {
  const { db, connectionString, config, quotasOf, isSmsForAll, log, clock, onOutcome } = options;
  const { believedTs = clock } = options;
  const { concurrency, maxAttempts, pollIntervalMs, retentionDays } = config;
  tellOfDailyQuota(config, log);
  const isAllowedNumber = createNumberRule(config.sms.allowedPrefixes);
  const drivers = options.drivers ?? (await openDrivers(config, { log, clock }));
  if (!(await takeOldMessages(db, clock())))
    log.warn(
      { event: 'notifications.jobs-hidden' },
      'This role may not take the push and SMS that version 0.2.0 or 0.3.0 left: only that version delivers them.',
    );
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
    // The log driver counts too: whoever tries the service out wants alarms to behave as if somebody had been notified.
    'sms',
    ...(options.contacts.email ? (['email'] as const) : []),
    'webhook',
  ];
  const rules = { quotasOf, isAllowedNumber, isSmsForAll };
  const tend = async () => {
    await delivering.tend();
    await takeOldMessages(db, clock());
    const nowTs = believedTs();
    if (nowTs === null) return;
    await forgetOutcomes(db, nowTs - retentionDays * dayMs);
    await forgetCounts(db, nowTs);
  };
  const timer = setInterval(() => {
    tend().catch((error: unknown) =>
      log.warn(
        { event: 'notifications.unkept', err: error },
        'Old notifications could not be deleted, or abandoned ones could not be released.',
      ),
    );
  }, tendIntervalMs);
  return {
    enqueue: (tx, notifications) =>
      enqueueNotifications(tx, notifications, { ...rules, nowTs: clock() }),
    notify: (tx, asks) => notify(tx, asks, { ...rules, ownChannels, nowTs: clock() }),
    lastLookTs: delivering.lastLookTs,
    dropPlanned,
    notifyResolved: (tx, closed) => notifyResolved(tx, closed, { quotasOf, nowTs: clock() }),
    close: async () => {
      clearInterval(timer);
      await delivering.close();
      await Promise.all([drivers.push.close(), drivers.sms.close()]);
    },
  };
}

const longestTimeoutMs = ({ push, sms }: NotificationSettings): number =>
  Math.max(push?.timeoutMs ?? 0, sms.driver === 'log' ? 0 : sms.timeoutMs);

/** The channels that the operator configures. A log reaches nobody, so it has its own name. */
function channelsOf({ push, sms }: NotificationSettings): string[] {
  return [...(push ? ['push'] : []), sms.driver === 'log' ? 'sms-log' : 'sms'];
}

/** The older name of `quotas.messagesPerDay`, which counted SMS too; `readSettings` accepts it in place of that. */
function tellOfDailyQuota({ dailyQuota }: NotificationSettings, log: NotificationLog): void {
  if (dailyQuota === undefined) return;
  log.info(
    { event: 'notifications.quota-renamed', messagesPerDay: dailyQuota },
    'The setting notifications.dailyQuota was renamed: it sets quotas.messagesPerDay.',
  );
}

/** How contacts are reached: the e-mail addresses and webhooks of accounts. */
export type ContactOptions = {
  keys: ContactKeys;
  findEventId: FindEventId;
  /** Null if no mail is sent. */
  email: { smtpUrl: string; from: string; timeoutMs: number } | null;
  isPrivateAllowed: boolean;
  /** Replaces the system's resolver. */
  lookupAll?: PostOptions['lookupAll'];
};

type DeliverySideDeps = {
  db: Database;
  connectionString: string;
  contacts: ContactOptions;
  drivers: Drivers;
  isAllowedNumber: NumberRule;
  alarms: AlarmPort;
  maxAttempts: number;
  pollIntervalMs: number;
  /** Push messages, and SMS, under way at once. */
  concurrency: number;
  /** The longest that a push message or an SMS may take. */
  timeoutMs: number;
  log: NotificationLog;
  clock: Clock;
  /** The time to use for deleting and giving up, ms; null if the clock is in doubt. */
  believedTs: () => WallMs | null;
  onOutcome?: DeliveryDeps['onOutcome'];
  /** The channels of this process besides those of contacts. */
  channels: string[];
};

type DeliverySide = {
  /** When it last looked for due messages, ms; null if it has not yet. */
  lastLookTs: () => number | null;
  /** Periodic work. */
  tend: () => Promise<void>;
  close: () => Promise<void>;
};

const hookTimeoutMs = 5_000;
/**
 * A slow receiver costs a socket: webhooks never tried get fewer places, and those that did not answer last time few.
 */
const hookPlaces = { webhook: 512, 'webhook-new': 256, 'webhook-unanswered': 16 };
const mailPlaces = 6;
/** Database connections that all deliveries of this process share: deliveries that begin together also end together. */
const databasePlaces = 4;
/** The lease outlasts any delivery, and the transaction that stores its outcome. */
const leaseMarginMs = 30_000;

/** Starts delivering in this process, and announces its channels. */
async function startDeliverySide(deps: DeliverySideDeps): Promise<DeliverySide> {
  const { db, alarms, pollIntervalMs, concurrency, log, clock, believedTs } = deps;
  const { email: mail, isPrivateAllowed, lookupAll, keys, findEventId } = deps.contacts;
  const email = mail && emailDriver(mail);
  const reach: PostOptions = {
    isPrivateAllowed,
    timeoutMs: hookTimeoutMs,
    ...(lookupAll ? { lookupAll } : {}),
  };
  const undelivered = createUndeliveredLog(
    (fields) =>
      log.warn(
        { event: 'notification.undelivered', ...fields },
        'Notifications could not be delivered.',
      ),
    clock,
  );
  const deliveryDeps: DeliveryDeps = {
    ...deps,
    undelivered,
    db: inTurn(db, databasePlaces),
    email,
    hooks: hookDriver(reach, clock),
    keys,
    findEventId,
  };
  const onError = (err: unknown) =>
    log.warn(
      { event: 'notifications.turns-failed', err },
      'Due messages could not be read or written; the service will try again.',
    );
  const process = randomUUID();
  const channels = [...deps.channels, ...(email ? ['email'] : []), 'webhook'];
  const announce = () => announceChannels(db, process, { channels, nowTs: clock() });
  await announce();
  const turns = startDispatcher({
    db,
    clock,
    deliver: (delivery) => deliver(deliveryDeps, delivery),
    places: { push: concurrency, sms: concurrency, email: mailPlaces, ...hookPlaces },
    pollIntervalMs,
    leaseMs: Math.max(hookTimeoutMs, mail?.timeoutMs ?? 0, deps.timeoutMs) + leaseMarginMs,
    onError,
  });
  const listening = listenForMessages({
    connectionString: deps.connectionString,
    channel: dueChannel,
    onNotified: turns.look,
    onError,
  });
  const promoting = setInterval(() => {
    queuePlanned(db, clock()).catch(onError);
  }, pollIntervalMs);
  return {
    lastLookTs: turns.lastLookTs,
    async tend() {
      undelivered.flush();
      await announce();
      const nowTs = believedTs();
      // While the clock is in doubt no message counts as too old; those to contacts that are gone are still given up.
      await giveUp(db, alarms, { beforeMs: (nowTs ?? 0) - dayMs, nowTs: clock() });
      if (nowTs !== null) await forgetRecipients(db, nowTs - dayMs);
    },
    async close() {
      clearInterval(promoting);
      await listening.close();
      await turns.close();
      undelivered.flush({ isEnd: true });
      email?.close();
      await forgetProcess(db, process).catch(onError);
    },
  };
}

/** The same database, but with at most `most` queries and transactions under way. */
function inTurn(db: Database, most: number): Database {
  const waiting: (() => void)[] = [];
  let underWay = 0;
  async function run<T>(work: () => Promise<T>): Promise<T> {
    if (underWay >= most) await new Promise<void>((resolve) => void waiting.push(resolve));
    else underWay += 1;
    try {
      return await work();
    } finally {
      // Pass the place on to the next in line.
      const next = waiting.shift();
      if (next) next();
      else underWay -= 1;
    }
  }
  const query = ((text: string, values?: unknown[]) =>
    run(() => db.query(text, values))) as Database['query'];
  return {
    ...db,
    query,
    transaction: (work, options) => run(() => db.transaction(work, options)),
  };
}

/** An alarm all of whose messages failed is announced again. */
async function giveUp(
  db: Database,
  alarms: AlarmPort,
  { beforeMs, nowTs }: { beforeMs: number; nowTs: WallMs },
): Promise<void> {
  const ended = await giveUpOld(db, beforeMs, nowTs);
  for (const one of ended) {
    const { alarmId } = one;
    if (alarmId === null) continue;
    await db.transaction(async (tx) => {
      await alarms.lockAlarms(tx, [alarmId]);
      await endAnnouncement(tx, one, { alarms, nowTs });
    });
  }
}
