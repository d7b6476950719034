import pg from 'pg';
import type { SenseEvent } from '../contract/event.ts';
import { normalizePhoneNumber } from '../contract/values.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { pause } from '../lib/wait.ts';
import { asDeliveryError, DeliveryError, type DriverVerdict } from './channels/channel.ts';
import type { EmailDriver } from './channels/email.ts';
import type { Drivers } from './channels/open.ts';
import type { HookDriver } from './channels/webhook.ts';
import type { UndeliveredLog } from './log.ts';
import {
  endAnnouncement,
  listAlarmIds,
  settleDelivery,
  claimDue,
  type DeliveryOutcome,
} from './outbox.ts';
import { type Reason, reasons } from './reasons.ts';
import type {
  AlarmNow,
  AlarmPort,
  Lane,
  MessageChannel,
  NumberRule,
  Delivery,
} from './recipients.ts';
import { hasPushToken, removePushToken } from './routes.ts';
import { countSegments, describeTime, maxSegments, wordsOf } from './text.ts';
import { type HookLinks, hookPayload } from './webhook-docs.ts';
import type { Words } from './words.ts';
import type { Clock, WallMs } from '../lib/clock-readings.ts';

export type AttemptState = 'sent' | 'logged' | 'failed' | 'retried';

export type DeliveryDeps = SendDeps & {
  db: Database;
  alarms: AlarmPort;
  isAllowedNumber: NumberRule;
  maxAttempts: number;
  undelivered: UndeliveredLog;
  clock: Clock;
  /** Called with the outcome of each attempt, for metrics. */
  onOutcome?: ((outcome: { kind: MessageChannel; state: AttemptState }) => void) | undefined;
};

/**
 * Makes one attempt to deliver a claimed message, then releases its recipient. A message that fails for now is due
 * again later, with a growing delay. If the process ends during an attempt, the attempt is repeated, so a message is
 * sent at least once.
 */
export async function deliver(deps: DeliveryDeps, delivery: Delivery): Promise<void> {
  const { db, alarms, maxAttempts, undelivered, clock, onOutcome } = deps;
  const { kind } = delivery;
  const settle = async (outcome: Omit<DeliveryOutcome, 'nowTs' | 'via'>, via: string) => {
    await db.transaction(async (tx) => {
      const alarmIds = await listAlarmIds(tx, delivery);
      if (alarmIds.length > 0) await alarms.lockAlarms(tx, alarmIds);
      const nowTs = clock();
      const settled = await settleDelivery(tx, delivery, { ...outcome, via, nowTs });
      if (outcome.state !== 'queued')
        for (const one of settled) await endAnnouncement(tx, one, { alarms, nowTs });
    });
    if (outcome.state !== 'queued' && delivery.alarmId !== null)
      alarms.onChanged(delivery.accountId);
    onOutcome?.({ kind, state: outcome.state === 'queued' ? 'retried' : outcome.state });
  };
  const via = viaOf(deps, kind);
  // If the telephone's session has ended or its token was removed from `apn`, messages that still wait are not sent.
  const isGone =
    kind === 'push' && !(await hasPushToken(db, delivery.accountId, delivery.recipient));
  const needless = isGone ? 'contact-gone' : reasonAgainst(delivery, deps.isAllowedNumber);
  try {
    if (needless) throw new DeliveryError('never', needless, reasons[needless]);
    await send(deps, await digest(deps, delivery));
  } catch (error) {
    const failure = asDeliveryError(error);
    const { verdict, reason } = failure;
    if (verdict === 'gone' && kind === 'push')
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
  const state = isLog(deps, kind) ? 'logged' : 'sent';
  const over = { reason: null, error: null, dueMs: clock(), restMs: 0, hasFailed: false };
  await settle({ state, ...over }, via);
}

/** The longest `Retry-After` that we honour: a message is given up after a day. */
const longestRestMs = 3_600_000;

/** About 3 s, 7 s, 20 s … six hours. */
function backOffMs(attempts: number): number {
  return Math.round(1_000 * Math.exp(Math.min(10, attempts)));
}

function viaOf({ drivers }: SendDeps, kind: MessageChannel): string {
  if (kind === 'email') return 'smtp';
  return kind === 'webhook' ? 'webhook' : drivers[kind].name;
}

const isLog = ({ drivers }: SendDeps, kind: MessageChannel): boolean =>
  kind === 'sms' && drivers.sms.isLog === true;

/** Null if the failure says nothing about the recipient, because the operator has to fix the provider. */
function isOfRecipient(kind: MessageChannel, verdict: DriverVerdict, reason: Reason): true | null {
  if (kind === 'webhook') return true;
  return verdict !== 'again' && reason !== 'no-provider' && reason !== 'no-mail-server'
    ? true
    : null;
}

/** Why a message is not sent after all; checked at each attempt, because it may be older than the current rules. */
function reasonAgainst(delivery: Delivery, isAllowedNumber: NumberRule): Reason | null {
  if (delivery.isDisabled) return 'account-disabled';
  if (delivery.kind === 'email' && delivery.type !== 'confirm' && !delivery.isConfirmed)
    return 'not-confirmed';
  if (delivery.type === 'confirm' && delivery.isUnsubscribed) return 'not-confirmed';
  if (!delivery.isSuiting) return 'other-labels';
  if (delivery.kind !== 'sms') return null;
  const number = normalizePhoneNumber(delivery.recipient);
  if (number === null) return 'number-form';
  return isAllowedNumber(number) ? null : 'number-refused';
}

/** Makes the links in mails to a contact, and the secrets of a webhook. */
export type ContactKeys = {
  confirmUrl: (contactUuid: string) => string;
  unsubscribeUrl: (contactUuid: string) => string;
  webhookSecrets: (contactUuid: string) => string[];
  /** The URL of an alarm; undefined if no public address is configured. */
  alarmUrl: (alarmId: number) => string | undefined;
  /** The console's page of a device; undefined without the console. */
  deviceUrl: (deviceUuid: string) => string | undefined;
};

/** The identifier of the recorded event; undefined if it was not recorded. */
export type FindEventId = (
  deviceUuid: string,
  cause: Pick<SenseEvent['cause'], 'engine' | 'senses'>,
) => Promise<string | undefined>;

type SendDeps = {
  drivers: Drivers;
  /** Null if no SMTP server is configured. */
  email: EmailDriver | null;
  hooks: HookDriver;
  findEventId: FindEventId;
  keys: ContactKeys;
};

/** Sends a message by its channel. Rejects with a `DeliveryError`. */
async function send(deps: SendDeps, delivery: Delivery): Promise<void> {
  switch (delivery.kind) {
    case 'push':
    case 'sms':
      return deps.drivers[delivery.kind].send(messageOf(delivery));
    case 'email':
      return sendMail(deps, delivery, delivery.contactUuid ?? '');
    case 'webhook': {
      const secrets = deps.keys.webhookSecrets(delivery.contactUuid ?? '');
      const { id, recipient: url } = delivery;
      const payload = hookPayload(delivery, await linksOf(deps, delivery));
      return deps.hooks.send({ id, url, secrets, payload, timeoutMs: timeoutOf(delivery) });
    }
  }
}

const hastyMs = 1_500;

/**
 * A webhook that did not answer the last time gets a short timeout, except at every third attempt: so a slow receiver
 * is reached as well, and one that hangs costs little. Undefined: the usual timeout.
 */
const timeoutOf = ({ lane, attempts }: Delivery): number | undefined =>
  lane === 'webhook-unanswered' && attempts % 3 !== 0 ? hastyMs : undefined;

async function linksOf(
  { findEventId, keys }: SendDeps,
  { deviceUuid, data, alarmId }: Delivery,
): Promise<HookLinks> {
  return {
    eventId: deviceUuid !== null && data ? await findEventId(deviceUuid, data) : undefined,
    alarmUrl: alarmId === null ? undefined : keys.alarmUrl(alarmId),
  };
}

const messageOf = ({ id, recipient, title, body, deviceUuid, engine }: Delivery) => ({
  id,
  recipient,
  title,
  body,
  data: { deviceAuthUuid: deviceUuid ?? '', ...engine },
});

async function sendMail(
  { email, keys }: SendDeps,
  { id, recipient, type, title, body, language, deviceUuid }: Delivery,
  contactUuid: string,
): Promise<void> {
  if (!email) throw new DeliveryError('never', 'no-mail-server', 'SMTP_URL is not set.');
  const words = wordsOf(language);
  const deviceUrl = deviceUuid === null ? undefined : keys.deviceUrl(deviceUuid);
  const text =
    type === 'confirm'
      ? { title: words.confirmTitle, body: words.confirmBody(keys.confirmUrl(contactUuid)) }
      : { title, body: deviceUrl === undefined ? body : `${body}\n${deviceUrl}` };
  const unsubscribeUrl = keys.unsubscribeUrl(contactUuid);
  const { unsubscribe } = words;
  await email.send({ id, recipient, ...text, unsubscribeUrl, unsubscribe });
}

type DigestDeps = { db: Sql; alarms: AlarmPort; clock: Clock };
type Digested = { title: string; alarmId: number | null };

/**
 * The message as it is sent: with what has happened to its alarm since or, if its recipient had many messages lately,
 * together with all others that wait for it.
 */
async function digest({ db, alarms, clock }: DigestDeps, delivery: Delivery): Promise<Delivery> {
  const isOfMany =
    delivery.isGathering && delivery.kind !== 'webhook' && delivery.deviceUuid !== null;
  const others = isOfMany ? await listDigested(db, delivery, clock()) : [];
  const all = [delivery, ...others];
  const ids = all.flatMap(({ alarmId }) => alarmId ?? []);
  const states = ids.length === 0 ? [] : await alarms.listAlarmsNow(db, [...new Set(ids)]);
  const stateOf = new Map(states.map((state) => [state.alarmId, state]));
  if (others.length === 0) {
    const state = delivery.alarmId === null ? undefined : stateOf.get(delivery.alarmId);
    return state && delivery.type !== 'closed' ? sayMeanwhile(delivery, state, clock()) : delivery;
  }
  const open = all.filter(
    ({ alarmId }) => alarmId === null || stateOf.get(alarmId)?.closedTs === null,
  );
  const text = textOf(open, all.length - open.length, wordsOf(delivery.language));
  return { ...delivery, ...(delivery.kind === 'sms' ? { ...text, body: asSms(text) } : text) };
}

/** As many lines as fit into an SMS. */
function asSms({ title, body }: Pick<Delivery, 'title' | 'body'>): string {
  const lines = [title, ...body.split('\n')];
  while (lines.length > 1 && countSegments(lines.join('\n')) > maxSegments) lines.pop();
  return lines.join('\n');
}

/** Includes messages that an earlier attempt has already grouped with this one. */
async function listDigested(db: Sql, delivery: Delivery, nowTs: WallMs): Promise<Digested[]> {
  const { id, contactId, accountId, kind, recipient } = delivery;
  const { rows } = await db.query<Digested>(
    `with gathered as (
       update notification n
          set grouped_in = $1
        where n.state = 'queued' and n.id <> $1 and n.due_at <= ms_to_timestamp($6)
          and n.type not in ('confirm', 'test')
          and (n.grouped_in is null or n.grouped_in = $1)
          and case when $2::bigint is null
                   then n.contact_id is null and n.account_id = $3 and n.kind = $4 and n.recipient = $5
                   else n.contact_id = $2 end
          and (n.device_id is null or exists (
                select from device d where d.id = n.device_id and d.account_id is not null))
          and ($2::bigint is null or exists (
                select from contact c join device d on d.id = n.device_id
                 where c.id = $2 and (c.labels = '{}' or d.labels && c.labels)))
       returning n.id, n.title, n.alarm_id
     )
     select title, alarm_id as "alarmId" from gathered order by id desc`,
    [id, contactId, accountId, kind, recipient, nowTs],
  );
  return rows;
}

const maxNamed = 10;

function textOf(open: Digested[], over: number, words: Words): Pick<Delivery, 'title' | 'body'> {
  // Newest first; the delivery itself is the oldest message.
  const newest = [...open.slice(1), ...open.slice(0, 1)];
  const named = newest.slice(0, maxNamed).map(({ title }) => title);
  const more = newest.length > maxNamed ? ['…'] : [];
  const ended = over > 0 ? [words.gatheredOver(over)] : [];
  const title = open.length > 0 ? words.gathered(open.length) : words.gatheredOver(over);
  return { title, body: [...named, ...more, ...ended].join('\n') };
}

/** A queued message is sent even if its alarm has changed; it then says what has happened since. */
function sayMeanwhile(delivery: Delivery, state: AlarmNow, nowTs: WallMs): Delivery {
  const words = wordsOf(delivery.language);
  const when = (ts: number) => describeTime(ts, nowTs, delivery.timeZone, words);
  const { closedTs, acknowledgedTs, snoozedUntilTs } = state;
  const said =
    closedTs !== null
      ? words.overSince(when(closedTs))
      : acknowledgedTs !== null
        ? words.acknowledgedAt(when(acknowledgedTs))
        : snoozedUntilTs !== null && snoozedUntilTs > nowTs
          ? words.snoozedUntil(when(snoozedUntilTs))
          : null;
  return said === null ? delivery : { ...delivery, body: `${delivery.body}\n${said}` };
}

type DispatcherOptions = {
  db: Sql;
  clock: Clock;
  /** Makes one attempt and stores its outcome. */
  deliver: (delivery: Delivery) => Promise<void>;
  /** Deliveries under way at once in this process: in each lane, for one account, and to one host of webhooks. */
  places: Record<Lane, number>;
  perAccount?: number;
  perHost?: number;
  pollIntervalMs: number;
  leaseMs: number;
  onError: (error: unknown) => void;
};

type Dispatcher = {
  /** Call it when something may be due. */
  look: () => void;
  /** When this process last looked for due messages, ms; null if it has not yet. */
  lastLookTs: () => number | null;
  /** Waits for deliveries under way and starts no more. */
  close: () => Promise<void>;
};

const defaultPerAccount = 2;
/** Per host too: an account limit alone is no bound for somebody with many accounts and one receiver. */
const defaultPerHost = 16;

/**
 * Delivers messages until it is closed, with fair shares for the accounts. Each lane has its own places, so receivers
 * or providers that hang do not delay the other lanes.
 */
export function startDispatcher(options: DispatcherOptions): Dispatcher {
  const { db, clock, deliver, places, pollIntervalMs, leaseMs, onError } = options;
  const { perAccount = defaultPerAccount, perHost = defaultPerHost } = options;
  const underWay = new Set<{ delivery: Delivery; ended: Promise<void> }>();
  let looking: Promise<void> | null = null;
  let again = false;
  let closed = false;
  let lastLookTs: number | null = null;

  function begin(delivery: Delivery): void {
    const ended = deliver(delivery)
      .catch(onError)
      .finally(() => {
        underWay.delete(attempt);
        look();
      });
    const attempt = { delivery, ended };
    underWay.add(attempt);
  }

  function freePlaces(): Record<Lane, number> {
    const free = { ...places };
    for (const { delivery } of underWay) free[delivery.lane] -= 1;
    return free;
  }

  async function fill(): Promise<void> {
    do {
      again = false;
      const free = freePlaces();
      if (Object.values(free).every((n) => n <= 0)) return;
      const deliveries = [...underWay].map(({ delivery }) => delivery);
      const query = {
        nowTs: clock(),
        places: free,
        perAccount,
        perHost,
        underWay: deliveries,
        leaseMs,
      };
      for (const delivery of await claimDue(db, query)) begin(delivery);
      lastLookTs = clock();
    } while (again && !closed);
  }

  /** Only one query runs at a time; a call during it makes another one follow. */
  function look(): void {
    again = true;
    if (closed || looking) return;
    looking = fill()
      .catch(onError)
      .finally(() => {
        looking = null;
        // Somebody called `look` after the last query and before this line.
        if (again && Object.values(freePlaces()).some((n) => n > 0)) look();
      });
  }

  const timer = setInterval(look, pollIntervalMs);
  look();
  return {
    look,
    lastLookTs: () => lastLookTs,
    async close() {
      closed = true;
      clearInterval(timer);
      await looking;
      await Promise.all([...underWay].map(({ ended }) => ended));
    },
  };
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
export function listenForMessages(options: ListenOptions): { close: () => Promise<void> } {
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
