import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { type AlarmNow, listAlarmsNow } from '../alarms/store.ts';
import type { ChannelName } from '../contract/actions.ts';
import { normalizePhoneNumber } from '../contract/values.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { startDispatcher } from '../lib/dispatcher.ts';
import { FairBudget } from '../lib/fair-budget.ts';
import { pause } from '../lib/wait.ts';
import {
  asDeliveryError,
  type Delivery,
  DeliveryError,
  type DriverVerdict,
  type NotificationLog,
  type Places,
} from './channels/channel.ts';
import { channels, type OpenChannels } from './channels/channels.ts';
import type { QuotasOf } from './daily-limits.ts';
import { unbundle } from './ended.ts';
import { gather } from './gather.ts';
import { createUndeliveredLog, type UndeliveredLog } from './log.ts';
import {
  claimMessages,
  type DeliveryOutcome,
  endAnnouncements,
  forgetRecipients,
  giveUpOld,
  lockAlarmsOf,
  queuePlanned,
  settleDelivery,
} from './outbox.ts';
import { type Reason, reasons } from './reasons.ts';
import {
  announceChannels,
  dueChannel,
  forgetProcess,
  hasPushToken,
  logSuffix,
  type NumberRule,
  removePushToken,
} from './recipients.ts';
import type { NotificationSettings } from './settings.ts';
import { describeOver, describeTime, wordsOf } from './text.ts';
import type { Clock, WallMs } from '../lib/clock-readings.ts';

export type AttemptState = 'sent' | 'logged' | 'failed' | 'retried';

type DeliveryDeps = {
  db: Database;
  quotasOf: QuotasOf;
  /** The channels of this process. */
  open: OpenChannels;
  /** Called when alarms of this account may have changed, after the commit. */
  onAlarms: (accountId: number) => void;
  isAllowedNumber: NumberRule;
  maxAttempts: number;
  undelivered: UndeliveredLog;
  clock: Clock;
  /** Called with the outcome of each attempt, for metrics. */
  onOutcome?: ((outcome: { kind: ChannelName; state: AttemptState }) => void) | undefined;
};

type DeliveringOptions = Omit<DeliveryDeps, 'maxAttempts' | 'undelivered'> & {
  connectionString: string;
  config: Pick<NotificationSettings, 'pollIntervalMs' | 'concurrency' | 'maxAttempts'>;
  log: NotificationLog;
  /** The time to use for deleting and giving up, ms; null if the clock is in doubt. */
  believedTs: () => WallMs | null;
};

type DeliverySide = {
  /** When this process last looked for due messages, ms; null if it has not yet. */
  lastLookTs: () => number | null;
  /** Periodic work. */
  tend: () => Promise<void>;
  close: () => Promise<void>;
};

/** How many deliveries one process makes at once for one account. */
const perAccount = 2;
/** Per host of webhooks too: an account limit is no bound for somebody with many accounts and one receiver. */
const perHost = 16;
/** Database connections that all deliveries of this process share: deliveries that begin together also end together. */
const databasePlaces = 4;
/** The lease outlasts any delivery, and the transaction that stores its outcome. */
const leaseMarginMs = 30_000;

const dayMs = 86_400_000;

/** Starts delivering in this process, and announces its channels. */
export async function startDelivering(options: DeliveringOptions): Promise<DeliverySide> {
  const { db, open, config, quotasOf, log, clock, believedTs } = options;
  const { pollIntervalMs, concurrency, maxAttempts } = config;
  const undelivered = createUndeliveredLog(
    (fields) =>
      log.warn(
        { event: 'notification.undelivered', ...fields },
        'Notifications could not be delivered.',
      ),
    clock,
  );
  const deps: DeliveryDeps = {
    ...options,
    maxAttempts,
    undelivered,
    db: withPlaces(db, databasePlaces),
  };
  const onError = (err: unknown) =>
    log.warn(
      { event: 'notifications.turns-failed', err },
      'Due messages could not be read or written; the service will try again.',
    );
  const process = randomUUID();
  const announced = Object.entries(open).map(([name, { isLog }]) =>
    isLog ? name + logSuffix : name,
  );
  const announce = () => announceChannels(db, process, { channels: announced, nowTs: clock() });
  await announce();
  const all = Object.values(channels);
  let lastLookTs: number | null = null;
  const leaseMs =
    Math.max(...Object.values(open).map(({ timeoutMs }) => timeoutMs)) + leaseMarginMs;
  const dispatcher = startDispatcher<Delivery>({
    // A channel that is not open has places too: its messages fail with the reason.
    places: Object.assign({}, ...all.map(({ places }) => places(concurrency))) as Places,
    async claim(places, underWay) {
      const due = await claimMessages(db, {
        nowTs: clock(),
        places,
        perAccount,
        perHost,
        underWay,
        leaseMs,
      });
      lastLookTs = clock();
      return due;
    },
    work: (delivery) => deliver(deps, delivery),
    pollIntervalMs,
    onError,
  });
  const listening = listenForMessages({
    connectionString: options.connectionString,
    channel: dueChannel,
    onNotified: dispatcher.look,
    onError,
  });
  const closing = new AbortController();
  const { signal } = closing;
  let promoted: Promise<void> | null = null;
  const promoting = setInterval(() => {
    promoted ??= queuePlanned(db, clock())
      .then(() => unbundle(db, { quotasOf, clock, onError, signal }))
      .catch(onError)
      .finally(() => (promoted = null));
  }, pollIntervalMs);
  return {
    lastLookTs: () => lastLookTs,
    async tend() {
      undelivered.flush();
      await announce();
      const nowTs = believedTs();
      // While the clock is in doubt no message counts as too old; those to contacts that are gone are still given up.
      const of = { beforeMs: (nowTs ?? 0) - dayMs, nowTs: clock() };
      await giveUpOld(db, of, signal);
      if (nowTs !== null) await forgetRecipients(db, nowTs - dayMs);
    },
    async close() {
      clearInterval(promoting);
      closing.abort();
      await promoted;
      await listening.close();
      await dispatcher.close();
      undelivered.flush({ isEnd: true });
      for (const channel of Object.values(open)) await channel.close();
      await forgetProcess(db, process).catch(onError);
    },
  };
}

/** The same database, but with at most `most` queries and transactions under way. */
function withPlaces(db: Database, most: number): Database {
  const places = new FairBudget({ most, mostOfKey: () => most });
  const run = <T>(work: () => Promise<T>): Promise<T> => places.run('delivery', work);
  const query = ((text: string, values?: unknown[]) =>
    run(() => db.query(text, values))) as Database['query'];
  return {
    ...db,
    query,
    transaction: (work, options) => run(() => db.transaction(work, options)),
  };
}

/**
 * Makes one attempt to deliver a claimed message, then releases its recipient. A message that fails for now is due
 * again later, with a growing delay. If the process ends during an attempt, the attempt is repeated, so a message is
 * sent at least once.
 */
async function deliver(deps: DeliveryDeps, delivery: Delivery): Promise<void> {
  const { db, open, onAlarms, maxAttempts, undelivered, clock, onOutcome } = deps;
  const { kind } = delivery;
  const settle = async (outcome: Omit<DeliveryOutcome, 'nowTs' | 'via'>, via: string) => {
    await db.transaction(async (tx) => {
      await lockAlarmsOf(tx, delivery);
      const nowTs = clock();
      const settled = await settleDelivery(tx, delivery, { ...outcome, via, nowTs });
      if (outcome.state !== 'queued') await endAnnouncements(tx, settled, nowTs);
    });
    const { state } = outcome;
    if (state !== 'queued' && delivery.alarmId !== null) onAlarms(delivery.accountId);
    if (state !== 'held-back') onOutcome?.({ kind, state: state === 'queued' ? 'retried' : state });
  };
  const channel = open[kind];
  const via = channel?.via ?? 'none';
  const isToken = channels[kind].reaches === 'tokens';
  // If the telephone's session has ended or its token was removed from `apn`, messages that still wait are not sent.
  const isGone = isToken && !(await hasPushToken(db, delivery.accountId, delivery.recipient));
  const needless = isGone ? 'contact-gone' : reasonAgainst(delivery, deps.isAllowedNumber);
  try {
    if (needless) throw neverFor(needless);
    if (!channel) throw neverFor(channels[kind].unconfigured);
    const summary = await gather(deps, delivery);
    if (summary && 'heldBack' in summary) {
      const reason = summary.heldBack;
      const held = { reason, error: reasons[reason], dueMs: clock(), restMs: 0, hasFailed: null };
      await settle({ state: 'held-back', ...held }, via);
      return;
    }
    await channel.send(summary ?? (await withNews(deps, delivery)));
  } catch (error) {
    const failure = asDeliveryError(error);
    const { verdict, reason } = failure;
    if (verdict === 'gone' && isToken)
      await removePushToken(db, delivery.accountId, delivery.recipient);
    const again = verdict === 'again' && delivery.attempts < maxAttempts;
    const restMs = Math.min(failure.retryAfterMs ?? 0, longestRestMs);
    // Only the operator sees what a provider says; the account sees a reason of ours.
    undelivered.note({
      about: { notificationId: delivery.id },
      host: delivery.host,
      via,
      failure,
      again,
    });
    await settle(
      {
        state: again ? 'queued' : 'failed',
        reason,
        error: reasons[reason],
        dueMs: clock() + Math.max(restMs, backOffMs(delivery.attempts)),
        restMs,
        hasFailed: needless ? null : isOfRecipient(kind, verdict, reason),
      },
      via,
    );
    return;
  }
  // A message that only went to a log reached nobody.
  const state = channel?.isLog ? 'logged' : 'sent';
  const over = { reason: null, error: null, dueMs: clock(), restMs: 0, hasFailed: false };
  await settle({ state, ...over }, via);
}

/** The longest `Retry-After` that we honour: a message is given up after a day. */
const longestRestMs = 3_600_000;

/** About 3 s, 7 s, 20 s … six hours. */
function backOffMs(attempts: number): number {
  return Math.round(1_000 * Math.exp(Math.min(10, attempts)));
}

const neverFor = (reason: Reason) => new DeliveryError('never', reason, reasons[reason]);

/** Null if the failure says nothing about the recipient, because the operator has to fix the provider. */
function isOfRecipient(kind: ChannelName, verdict: DriverVerdict, reason: Reason): true | null {
  const { isForPrograms, unconfigured } = channels[kind];
  return isForPrograms || (verdict !== 'again' && reason !== unconfigured) ? true : null;
}

/** Why a message is not sent after all; checked at each attempt, because it may be older than the current rules. */
function reasonAgainst(delivery: Delivery, isAllowedNumber: NumberRule): Reason | null {
  if (delivery.isDisabled) return 'account-disabled';
  if (delivery.type !== 'confirm' && !delivery.isConfirmed) return 'not-confirmed';
  if (delivery.type === 'confirm' && delivery.isUnsubscribed) return 'not-confirmed';
  if (!delivery.isSuiting) return 'other-labels';
  if (channels[delivery.kind].reaches !== 'numbers') return null;
  const number = normalizePhoneNumber(delivery.recipient);
  if (number === null) return 'number-form';
  return isAllowedNumber(number) ? null : 'number-refused';
}

/** A message as it is sent by itself: with what has happened to its alarm since. */
async function withNews(
  { db, clock }: { db: Sql; clock: Clock },
  delivery: Delivery,
): Promise<Delivery> {
  const { alarmId, type } = delivery;
  if (alarmId === null || type === 'closed') return delivery;
  const [state] = await listAlarmsNow(db, [alarmId]);
  return state ? sayMeanwhile(delivery, state, clock()) : delivery;
}

/** A queued message is sent even if its alarm has changed; it then says what has happened since. */
function sayMeanwhile(delivery: Delivery, state: AlarmNow, nowTs: WallMs): Delivery {
  const words = wordsOf(delivery.language);
  const when = (ts: number) => describeTime(ts, nowTs, delivery.timeZone, words);
  const { beganTs, overTs, filledTs, closedTs, acknowledgedTs, snoozedUntilTs } = state;
  const said =
    closedTs !== null
      ? describeOver({ beganTs, overTs, filledTs, closedTs }, when, words)
      : acknowledgedTs !== null
        ? words.acknowledgedAt(when(acknowledgedTs))
        : snoozedUntilTs !== null && snoozedUntilTs > nowTs
          ? words.snoozedUntil(when(snoozedUntilTs))
          : null;
  return said === null ? delivery : { ...delivery, body: `${delivery.body}\n${said}` };
}

type ListenOptions = {
  connectionString: string;
  channel: string;
  /** Called for each notification, and after a reconnect, because some may have been lost. */
  onNotified: () => void;
  onError: (error: unknown) => void;
};

const retryMs = 5_000;

/** Listens on its own database connection, and reopens it when it breaks, until it is closed. */
function listenForMessages(options: ListenOptions): { close: () => Promise<void> } {
  const closing = new AbortController();
  const ended = listenOn(options, closing.signal);
  return {
    close: async () => {
      closing.abort();
      await ended;
    },
  };
}

async function listenOn(
  { connectionString, channel, onNotified, onError }: ListenOptions,
  closing: AbortSignal,
): Promise<void> {
  while (!closing.aborted) {
    const client = new pg.Client({ connectionString });
    const broken = new Promise<void>((resolve) => {
      client.on('error', () => resolve());
      client.on('end', () => resolve());
      closing.addEventListener('abort', () => resolve(), { once: true });
    });
    client.on('notification', onNotified);
    try {
      await client.connect();
      await client.query(`listen ${pg.escapeIdentifier(channel)}`);
      onNotified();
      await broken;
    } catch (error) {
      onError(error);
    }
    await client.end().catch(() => undefined);
    await pause(retryMs, closing);
  }
}
