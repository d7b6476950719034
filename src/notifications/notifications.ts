import type { ChannelName } from '../contract/actions.ts';
import type { Database } from '../db/database.ts';
import {
  channelOf,
  type ContactOptions,
  type Driver,
  type MessageQuotas,
  type NotificationLog,
} from './channels/channel.ts';
import { type OpenChannels, openChannels } from './channels/channels.ts';
import { type AttemptState, startDelivering } from './deliver.ts';
import type { NotifyRules } from './enqueue.ts';
import { takeOldMessages } from './old-jobs.ts';
import { createNumberRule } from './recipients.ts';
import { forgetCounts, forgetOutcomes } from './routes.ts';
import type { NotificationSettings } from './settings.ts';
import type { Clock, WallMs } from '../lib/clock-readings.ts';

export type Notifications = {
  /** Who may be notified by this process and others, and how much. */
  rules: NotifyRules;
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
  /** Called when alarms of this account may have changed, after the commit. */
  onAlarms: (accountId: number) => void;
  log: NotificationLog;
  clock: Clock;
  /** The time to use for deleting and giving up messages, ms; null if the clock is in doubt. Default: `clock`. */
  believedTs?: () => WallMs | null;
  /** Replaces the drivers that the configuration names. */
  drivers?: Partial<Record<ChannelName, Driver>>;
  /** Called with the outcome of each attempt, for metrics. */
  onOutcome?: (outcome: { kind: ChannelName; state: AttemptState }) => void;
};

const dayMs = 86_400_000;
const tendIntervalMs = 60_000;

/** Starts delivering in this process. Await it before anything is enqueued. */
export async function startNotifications(options: NotificationsOptions): Promise<Notifications> {
  const { db, config, quotasOf, isSmsForAll, log, clock, believedTs = clock } = options;
  tellOfDailyQuota(config, log);
  const isAllowedNumber = createNumberRule(config.sms.allowedPrefixes);
  const open = await openOwn(options);
  if (!(await takeOldMessages(db, clock())))
    log.warn(
      { event: 'notifications.jobs-hidden' },
      'This role may not take the push and SMS that version 0.2.0 or 0.3.0 left: only that version delivers them.',
    );
  const delivering = await startDelivering({ ...options, believedTs, open, isAllowedNumber });
  // The log driver counts too: whoever tries the service out wants alarms to behave as if somebody had been notified.
  const ownChannels = Object.keys(open) as ChannelName[];
  const tend = async () => {
    await delivering.tend();
    await takeOldMessages(db, clock());
    const nowTs = believedTs();
    if (nowTs === null) return;
    await forgetOutcomes(db, nowTs - config.retentionDays * dayMs);
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
    rules: { quotasOf, isAllowedNumber, isSmsForAll, ownChannels },
    lastLookTs: delivering.lastLookTs,
    close: async () => {
      clearInterval(timer);
      await delivering.close();
    },
  };
}

/** Opens the channels of this process, or what replaces them. */
async function openOwn(options: NotificationsOptions): Promise<OpenChannels> {
  const { config, contacts, log, clock, drivers = {} } = options;
  const standIns = Object.entries(drivers).map(([name, driver]) => [name, channelOf(driver, 0)]);
  return {
    ...(await openChannels(config, { ...contacts, log, clock })),
    ...Object.fromEntries(standIns),
  };
}

/** The older name of `quotas.messagesPerDay`, which counted SMS too; `readSettings` accepts it in place of that. */
function tellOfDailyQuota({ dailyQuota }: NotificationSettings, log: NotificationLog): void {
  if (dailyQuota === undefined) return;
  log.info(
    { event: 'notifications.quota-renamed', messagesPerDay: dailyQuota },
    'The setting notifications.dailyQuota was renamed: it sets quotas.messagesPerDay.',
  );
}
