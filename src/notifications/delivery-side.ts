import { randomUUID } from 'node:crypto';
import type { Database } from '../db/database.ts';
import type { AlarmPort } from './alarm-port.ts';
import { deliver, type DeliveryDeps } from './deliver.ts';
import { startDispatcher } from './dispatcher.ts';
import { emailDriver } from './channels/email.ts';
import type { Drivers } from './channels/open.ts';
import type { PostOptions } from './drivers/post-publicly.ts';
import { hookDriver } from './channels/webhook.ts';
import { endAnnouncement } from './end-announcement.ts';
import { listenForMessages } from './listen.ts';
import { createUndeliveredLog, type NotificationLog } from './log.ts';
import type { NumberRule } from './phone-number.ts';
import { giveUpOld, queuePlanned } from './planned.ts';
import { forgetProcess, tellChannels } from './process-queries.ts';
import type { ContactKeys, FindEventId } from './send.ts';
import { forgetTurns } from './settle-turn.ts';
import { dueChannel } from './turn.ts';

/** How contacts are reached: e-mail and webhooks of accounts. */
export type ContactOptions = {
  keys: ContactKeys;
  findEventId: FindEventId;
  /** Null: no mail is sent. */
  email: { smtpUrl: string; from: string; timeoutMs: number } | null;
  isPrivateAllowed: boolean;
  /** Stands in for the system's own. */
  lookupAll?: PostOptions['lookupAll'];
};

export type DeliverySideDeps = {
  db: Database;
  connectionString: string;
  contacts: ContactOptions;
  drivers: Drivers;
  isAllowedNumber: NumberRule;
  alarms: AlarmPort;
  maxAttempts: number;
  pollIntervalMs: number;
  /** Push, and SMS, under way at once. */
  concurrency: number;
  /** The longest that a push or an SMS may take. */
  timeoutMs: number;
  log: NotificationLog;
  clock: () => number;
  /** The time by which things may be forgotten and given up, ms; null: not now, the clock is in doubt. */
  believedTs: () => number | null;
  onOutcome?: DeliveryDeps['onOutcome'];
  /** The channels of this process beside those of contacts. */
  channels: string[];
};

export type DeliverySide = {
  /** When it last looked for what is due, ms; null: not yet. */
  lastLookTs: () => number | null;
  /** What is due now and then. */
  tend: () => Promise<void>;
  close: () => Promise<void>;
};

const hookTimeoutMs = 5_000;
/** A wait costs a socket. Whoever was never heard has fewer places, and who did not answer the last time has few. */
const hookPlaces = { webhook: 512, 'webhook-new': 256, 'webhook-unanswered': 16 };
const mailPlaces = 6;
/** Connections to the database that all deliveries of this process use at once: they end together as they began. */
const databasePlaces = 4;
/** A turn is held longer than any delivery takes, and what is written down then. */
const leaseMarginMs = 30_000;
const dayMs = 86_400_000;

/** Starts delivering in this process, and says which channels it has. */
export async function startDeliverySide(deps: DeliverySideDeps): Promise<DeliverySide> {
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
  const delivery: DeliveryDeps = {
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
      'Messages that are due could not be read or written; it is tried again.',
    );
  const process = randomUUID();
  const channels = [...deps.channels, ...(email ? ['email'] : []), 'webhook'];
  const tell = () => tellChannels(db, process, { channels, nowMs: clock() });
  await tell();
  const turns = startDispatcher({
    db,
    clock,
    deliver: (turn) => deliver(delivery, turn),
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
      await tell();
      const nowTs = believedTs();
      // In doubt nothing has waited too long; what is for a contact that is gone is given up all the same.
      await giveUp(db, alarms, { beforeMs: (nowTs ?? 0) - dayMs, nowMs: clock() });
      if (nowTs !== null) await forgetTurns(db, nowTs - dayMs);
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

/** The same database, of which at most so many queries and transactions are under way. */
function inTurn(db: Database, most: number): Database {
  const waiting: (() => void)[] = [];
  let underWay = 0;
  async function run<T>(work: () => Promise<T>): Promise<T> {
    if (underWay >= most) await new Promise<void>((resolve) => void waiting.push(resolve));
    else underWay += 1;
    try {
      return await work();
    } finally {
      // Whoever waits takes the place over.
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

/** An alarm of which nothing is left is told again. */
async function giveUp(
  db: Database,
  alarms: AlarmPort,
  { beforeMs, nowMs }: { beforeMs: number; nowMs: number },
): Promise<void> {
  const ended = await giveUpOld(db, beforeMs, nowMs);
  for (const one of ended) {
    const { alarmId } = one;
    if (alarmId === null) continue;
    await db.transaction(async (tx) => {
      await alarms.lockAlarms(tx, [alarmId]);
      await endAnnouncement(tx, one, { alarms, nowTs: nowMs });
    });
  }
}
