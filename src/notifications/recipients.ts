import type { NewNotification } from '../contract/actions.ts';
import type { CauseDetail, CauseSense, EngineCause } from '../contract/event.ts';
import { normalizePhoneNumber } from '../contract/values.ts';
import type { Sql } from '../db/sql.ts';
import type { Reason } from './reasons.ts';
import type { MessageQuotas } from './settings.ts';
import type { SenseWordsBySId } from './text.ts';
import type { WallMs } from '../lib/clock-readings.ts';

export type EnqueueOptions = {
  /** What an account may send on one day (UTC); messages over that limit are held back. */
  quotasOf: (accountId: number) => MessageQuotas;
  isAllowedNumber: NumberRule;
  /** Accounts need no permission from the operator to send SMS. */
  isSmsForAll: boolean;
  nowTs: WallMs;
  /** The channels of all processes that deliver; nothing is sent by any other. Absent: all channels. */
  configured?: ReadonlySet<MessageChannel>;
  /** Called with the decision for each message and recipient. */
  note?: Note;
};

/** Called with the decision for one recipient; a `Reason` says why the message is not sent. */
export type Note = (notification: NewNotification, decided: 'queued' | 'planned' | Reason) => void;

/** How a message is sent. */
export type MessageChannel = 'push' | 'sms' | 'email' | 'webhook';

/** A message for one recipient, before limits are applied. `contactId`: null if the recipient is not a contact. */
export type MessageCandidate = {
  notification: NewNotification;
  channel: MessageChannel;
  recipient: string;
  contactId: number | null;
  /** Absent: send it now. Otherwise send it then, if its alarm is still open and not acknowledged. */
  dueMs?: number;
};

/** Messages of one device that will not be sent for one reason: the first of them, and how many there are. */
export type Unsent = Omit<MessageCandidate, 'contactId' | 'dueMs'> & {
  reason: Reason;
  count: number;
};

export type UnsentList = {
  add(
    candidate: Omit<MessageCandidate, 'contactId' | 'dueMs'>,
    reason: Reason,
    count?: number,
  ): void;
  list(): Unsent[];
};

/** Collects one entry for each device, channel and reason, however many messages there are. */
export function createUnsentList(note?: Note): UnsentList {
  const entries = new Map<string, Unsent>();
  return {
    add({ notification, channel, recipient }, reason, count = 1) {
      note?.(notification, reason);
      const key = `${notification.deviceId} ${channel} ${reason}`;
      const entry = entries.get(key);
      if (entry) entry.count += count;
      else entries.set(key, { notification, channel, recipient, reason, count });
    },
    list: () => [...entries.values()],
  };
}

/** The notifications of one account, in the order of the requests. */
export type AskedOfAccount = {
  /** Each goes to all of the account's push tokens and contacts. */
  pushes: NewNotification[];
  sms: MessageCandidate[];
  /** Those that exceed the day's limits whatever else is decided, as a count for each device. */
  beyond: Record<NewNotification['kind'], Map<number, Beyond>>;
};

type Beyond = {
  notification: NewNotification;
  recipient: string;
  count: number;
  /** Kept if the caller wants the decision for each. */
  all: NewNotification[];
};

// How many more SMS than the limit to look at: some numbers may be refused, and later ones then take their place.
const spareSms = 200;

/**
 * Groups notifications by account. Those that certainly exceed the day's limits are counted and not kept: one message
 * may request tens of thousands.
 */
export function groupByAccount(
  notifications: Iterable<NewNotification>,
  { quotasOf, isAllowedNumber, note }: EnqueueOptions,
  unsent: UnsentList,
): Map<number, AskedOfAccount> {
  const byAccount = new Map<number, AskedOfAccount>();
  const judged = new Map<string, { number: string } | { refused: Reason }>();
  for (const notification of notifications) {
    const { accountId, kind } = notification;
    let asked = byAccount.get(accountId);
    if (!asked) byAccount.set(accountId, (asked = nothingAsked()));
    const quotas = quotasOf(accountId);
    if (kind === 'push') {
      if (asked.pushes.length < Math.max(quotas.messagesPerDay, quotas.webhooksPerDay))
        asked.pushes.push(notification);
      else countBeyond(asked, { notification, recipient: '' }, note);
      continue;
    }
    const { phoneNumber } = notification;
    if (asked.sms.length >= quotas.smsPerDay + spareSms) {
      countBeyond(asked, { notification, recipient: phoneNumber }, note);
      continue;
    }
    let verdict = judged.get(phoneNumber);
    if (!verdict) judged.set(phoneNumber, (verdict = judge(phoneNumber, isAllowedNumber)));
    const sms = { notification, channel: 'sms' as const, contactId: null };
    if ('refused' in verdict) unsent.add({ ...sms, recipient: phoneNumber }, verdict.refused);
    else asked.sms.push({ ...sms, recipient: verdict.number });
  }
  return byAccount;
}

const nothingAsked = (): AskedOfAccount => ({
  pushes: [],
  sms: [],
  beyond: { push: new Map(), sms: new Map() },
});

function countBeyond(
  { beyond }: AskedOfAccount,
  { notification, recipient }: Pick<Beyond, 'notification' | 'recipient'>,
  note: Note | undefined,
): void {
  const { deviceId, kind } = notification;
  let entry = beyond[kind].get(deviceId);
  if (!entry) beyond[kind].set(deviceId, (entry = { notification, recipient, count: 0, all: [] }));
  entry.count += 1;
  if (note) entry.all.push(notification);
}

function judge(
  phoneNumber: string,
  isAllowedNumber: EnqueueOptions['isAllowedNumber'],
): { number: string } | { refused: Reason } {
  const number = normalizePhoneNumber(phoneNumber);
  if (number === null) return { refused: 'number-form' };
  return isAllowedNumber(number) ? { number } : { refused: 'number-refused' };
}

/** What has happened to an alarm by the time a message about it is sent. */
export type AlarmNow = {
  alarmId: number;
  acknowledgedTs: number | null;
  snoozedUntilTs: number | null;
  closedTs: number | null;
};

/** What messages need from the alarms that they are about; `assembly/` connects the two. */
export type AlarmPort = {
  /** Only alarms that still exist. */
  listAlarmsNow: (sql: Sql, alarmIds: readonly number[]) => Promise<AlarmNow[]>;
  /** Until the transaction ends, nobody else settles messages about these alarms or changes them. */
  lockAlarms: (tx: Sql, alarmIds: readonly number[]) => Promise<void>;
  /** A message of this announcement reached somebody. Idempotent. */
  noteNotified: (tx: Sql, alarmId: number, of: OfAnnouncement) => Promise<void>;
  /** All messages of this announcement have failed. */
  takeBack: (tx: Sql, alarmId: number, of: OfAnnouncement) => Promise<void>;
  /** Alarms of this account may have changed; the change is committed. */
  onChanged: (accountId: number) => void;
};

/** `nowTs`: when its last message ended, ms. */
type OfAnnouncement = { announcement: number; nowTs: WallMs };

/** Whether SMS may be sent to a normalized number. */
export type NumberRule = (number: string) => boolean;

/** The longest matching prefix decides: `+49` allows, `!+49900` refuses. A number that matches none is refused. */
export function createNumberRule(prefixes: readonly string[]): NumberRule {
  const allows = new Map(prefixes.map((prefix) => [prefix.replace('!', ''), prefix[0] !== '!']));
  const longest = Math.max(0, ...[...allows.keys()].map(({ length }) => length));
  return (number) => {
    for (let length = longest; length > 0; length -= 1) {
      const allowed = allows.get(number.slice(0, length));
      if (allowed !== undefined) return allowed;
    }
    return false;
  };
}

/** Announces for a few minutes that a process delivers by these channels; deletes processes last seen a day ago. */
export async function announceChannels(
  sql: Sql,
  process: string,
  { channels, nowTs }: { channels: string[]; nowTs: WallMs },
): Promise<void> {
  await sql.query(
    `with old as (
       delete from delivering_process where seen_at < ms_to_timestamp($3) - interval '1 day'
     )
     insert into delivering_process (process, channels, seen_at)
     values ($1, $2, ms_to_timestamp($3))
     on conflict (process) do update set channels = excluded.channels, seen_at = excluded.seen_at`,
    [process, channels, nowTs],
  );
}

export async function forgetProcess(sql: Sql, process: string): Promise<void> {
  await sql.query('delete from delivering_process where process = $1', [process]);
}

/** Processes renew their announcement every minute. */
const seenWithinMs = 180_000;

/**
 * The channels of this process and of all others that deliver now. A log that takes SMS (`sms-log`) counts as a channel
 * here, but not where people see what is configured.
 */
export async function findConfigured(
  sql: Sql,
  ownChannels: readonly MessageChannel[],
  nowTs: WallMs,
): Promise<Set<MessageChannel>> {
  const { rows } = await sql.query<{ channel: MessageChannel | 'sms-log' }>({
    name: 'outbox-find-configured',
    text: `select distinct unnest(channels) as channel
             from delivering_process where seen_at > ms_to_timestamp($1)`,
    values: [nowTs - seenWithinMs],
  });
  const others = rows.map(({ channel }) => (channel === 'sms-log' ? 'sms' : channel));
  return new Set([...ownChannels, ...others]);
}

type Devices = ReadonlyMap<number, Pick<DeviceWords, 'labels'>>;

/** The messages of an account that may fit the limits; the others are added to `unsent`. */
export function address(
  asked: AskedOfAccount,
  sender: Sender,
  devices: Devices,
  options: EnqueueOptions,
  unsent: UnsentList,
): MessageCandidate[] {
  return [
    ...addressPushes(asked, sender, devices, options, unsent),
    ...addressSms(asked, sender, options, unsent),
  ];
}

function addressPushes(
  { pushes, beyond }: AskedOfAccount,
  { accountId, tokens, contacts, messagesUsed, webhooksUsed }: Sender,
  devices: Devices,
  { quotasOf, configured, nowTs, note }: EnqueueOptions,
  unsent: UnsentList,
): MessageCandidate[] {
  const { messagesPerDay, webhooksPerDay } = quotasOf(accountId);
  const recipientsOf = (notification: NewNotification): MessageCandidate[] => [
    ...tokens.map((token) => ({
      notification,
      channel: 'push' as const,
      recipient: token,
      contactId: null,
    })),
    ...contacts
      .filter(({ labels }) => suits(labels, devices.get(notification.deviceId)?.labels ?? []))
      .filter((contact) => contact.afterMs === 0 || mayPlan(notification, contact))
      .map(({ kind, contactId, address: recipient, afterMs }) => ({
        notification,
        channel: kind,
        recipient,
        contactId,
        ...(afterMs > 0 && { dueMs: nowTs + afterMs }),
      })),
  ];
  const reasonOf = ({ channel }: MessageCandidate) =>
    channel === 'webhook' ? ('webhooks-per-day' as const) : ('messages-per-day' as const);
  for (const { notification, count, all } of beyond.push.values())
    for (const candidate of recipientsOf(notification)) {
      unsent.add(candidate, reasonOf(candidate), count);
      for (const one of all) note?.(one, reasonOf(candidate));
    }
  const room = { messages: messagesPerDay - messagesUsed, webhooks: webhooksPerDay - webhooksUsed };
  const candidates: MessageCandidate[] = [];
  for (const notification of pushes) {
    // If the limit is not reached yet when a notification comes up, all its recipients become candidates.
    const open = { messages: room.messages > 0, webhooks: room.webhooks > 0 };
    for (const candidate of recipientsOf(notification)) {
      if (configured && !configured.has(candidate.channel)) {
        unsent.add(candidate, candidate.channel === 'email' ? 'no-mail-server' : 'no-provider');
        continue;
      }
      const counter = candidate.channel === 'webhook' ? 'webhooks' : 'messages';
      if (!open[counter]) {
        unsent.add(candidate, reasonOf(candidate));
        continue;
      }
      room[counter] -= 1;
      candidates.push(candidate);
    }
  }
  return candidates;
}

/** A contact with `afterMs` is notified of alarms only, and once of each. */
const mayPlan = ({ about }: NewNotification, { escalatedIds }: ContactOf): boolean =>
  about?.type === 'opened' && about.alarmId !== null && !escalatedIds.includes(about.alarmId);

/** A contact without labels is notified of all devices. */
const suits = (wanted: ContactOf['labels'], labels: readonly string[]): boolean =>
  wanted.length === 0 || wanted.some((label) => labels.includes(label));

function addressSms(
  { sms, beyond }: AskedOfAccount,
  { accountId, maySendSms, smsUsed }: Sender,
  { quotasOf, isSmsForAll, configured, note }: EnqueueOptions,
  unsent: UnsentList,
): MessageCandidate[] {
  const mayRing = maySendSms || isSmsForAll;
  const reason = mayRing ? 'sms-per-day' : 'sms-not-allowed';
  for (const { notification, recipient, count, all } of beyond.sms.values()) {
    unsent.add({ notification, channel: 'sms', recipient }, reason, count);
    for (const one of all) note?.(one, reason);
  }
  const hasRoom = mayRing && smsUsed < quotasOf(accountId).smsPerDay;
  const isConfigured = configured?.has('sms') ?? true;
  if (hasRoom && isConfigured) return sms;
  for (const candidate of sms) unsent.add(candidate, hasRoom ? 'no-sms-provider' : reason);
  return [];
}

/** The channel (LISTEN/NOTIFY) that wakes the delivering processes when messages were committed. */
export const dueChannel = 'sensorium_due';

export type MessageType =
  'notice' | 'confirm' | 'test' | 'opened' | 'repeated' | 'escalated' | 'closed';

/** What is stored of an event besides the text. */
export type NoticeData = {
  engine: EngineCause;
  senses: CauseSense[];
  why?: CauseDetail[];
  /** What closed the alarm, if it is over. */
  closedBy?: string;
};

/** A recipient: a contact, or a push token or telephone number of an account. */
export type RecipientKey = {
  accountId: number;
  kind: MessageChannel;
  recipient: string;
  contactId: number | null;
};

/**
 * What has its own places. Webhooks have three lanes: those that answered the last time, those that were never tried,
 * and those that did not answer the last time.
 */
export type Lane = MessageChannel | 'webhook-new' | 'webhook-unanswered';

/** A claimed message; its recipient is busy until it is settled. */
export type Delivery = RecipientKey & {
  id: number;
  lane: Lane;
  /** Host and port of a webhook. */
  host: string | null;
  /** Null if the recipient is not a contact. */
  contactUuid: string | null;
  type: MessageType;
  title: string;
  body: string;
  engine: EngineCause | null;
  data: NoticeData | null;
  deviceUuid: string | null;
  deviceName: string | null;
  language: string | null;
  timeZone: string | null;
  createdTs: number;
  /** Number of attempts, including this one. */
  attempts: number;
  isDisabled: boolean;
  /** True also if no confirmation is needed. */
  isConfirmed: boolean;
  isUnsubscribed: boolean;
  /** Whether the device now has one of the contact's labels, or needs none. */
  isSuiting: boolean;
  alarmId: number | null;
  announcement: number | null;
  /** The recipient had many messages lately: all that wait for it are sent as one. */
  isGathering: boolean;
};

const today = (parameter: string) => `(ms_to_timestamp(${parameter}) at time zone 'UTC')::date`;

/** A contact that may receive messages now. */
type ContactOf = {
  contactId: number;
  kind: 'email' | 'webhook';
  address: string;
  labels: string[];
  /** The delay before the contact is notified, if the alarm is then still open. */
  afterMs: number;
  /** Which of the requested alarms it was, or will be, notified of with that delay. */
  escalatedIds: number[];
};

/** An account with something to send, and what it has sent today. Others may be counting at the same time. */
export type Sender = {
  accountId: number;
  maySendSms: boolean;
  /** Without duplicates: first those of `apn` in the account's order, then those of sessions. */
  tokens: string[];
  /** Webhooks and confirmed addresses. */
  contacts: ContactOf[];
  timeZone: string | null;
  language: string | null;
  messagesUsed: number;
  webhooksUsed: number;
  smsUsed: number;
};

const used = (kind: string) => `
  coalesce((select used from message_count
             where kind = '${kind}' and account_id = account.id and key = ''
               and day >= ${today('$2')}), 0)`;

export async function findSenders(
  tx: Sql,
  accountIds: number[],
  nowTs: WallMs,
  alarmIds: readonly number[] = [],
): Promise<Map<number, Sender>> {
  const { rows } = await tx.query<Sender>({
    name: 'outbox-find-senders',
    text: `
      select account.id as "accountId", may_send_sms as "maySendSms", time_zone as "timeZone", language,
             (select coalesce(json_agg(token order by nth), '[]')
                from (select token, min(nth) as nth
                        from (select entry ->> 'token' as token, nth
                                from jsonb_array_elements(apn) with ordinality as e (entry, nth)
                               union all
                              select p.token, 1000 + extract(epoch from p.added_at)
                                from push_token p
                               where p.account_id = account.id) as every
                       where token is not null
                       group by token) as t) as tokens,
             (select coalesce(json_agg(json_build_object('contactId', c.id, 'kind', c.kind,
                                                         'address', c.address, 'labels', c.labels,
                                                         'afterMs', c.after_ms,
                                                         'escalatedIds', array(
                                         select n.alarm_id from notification n
                                          where n.alarm_id = any ($3) and n.contact_id = c.id
                                            and n.type = 'escalated' and c.after_ms > 0
                                            and n.state in ('planned', 'queued', 'sent', 'logged')))
                                       order by c.kind, c.place, c.id), '[]')
                from contact c
               where c.account_id = account.id
                 and (c.kind = 'webhook' or c.confirmed_at is not null)) as contacts,
             ${used('account')} as "messagesUsed", ${used('webhook')} as "webhooksUsed",
             ${used('sms')} as "smsUsed"
        from account
       where account.id = any ($1)`,
    values: [accountIds, nowTs, alarmIds],
  });
  return new Map(rows.map((row) => [row.accountId, row]));
}

/** What messages say about a device. `senses`: those that were asked for and have words. */
export type DeviceWords = {
  deviceId: number;
  name: string | null;
  labels: string[];
  senses: SenseWordsBySId;
};

/**
 * Escapes that PostgreSQL cannot turn into text: reading such JSON would fail the transaction that stores the
 * measurements. The first versions stored them; messages about such a device have no words for its senses.
 */
const unreadable = String.raw`\\u(0000|d[89a-f])`;

const arrayAt = (path: string) =>
  `case when json_typeof(${path}) = 'array' then ${path} else '[]' end`;

/** The words of the devices that messages are about, and of the senses that they name. */
export async function listDeviceWords(
  tx: Sql,
  deviceIds: number[],
  sIds: string[],
): Promise<Map<number, DeviceWords>> {
  const { rows } = await tx.query<DeviceWords>({
    name: 'outbox-list-device-words',
    text: `
      select id as "deviceId", name, labels,
             (select coalesce(json_object_agg(sense ->> 'sId', sense), '{}')
                from json_array_elements(${arrayAt("configuration -> 'module'")}) as m (module)
               cross join json_array_elements(${arrayAt("module -> 'senses'")}) as s (sense)
               where sense ->> 'sId' = any ($2)) as senses
        from (select id, name, labels,
                     case when configuration::text ~ '${unreadable}' then '{}'::json
                          else configuration end as configuration
                from device
               where id = any ($1)) as d`,
    values: [deviceIds, sIds],
  });
  return new Map(rows.map((row) => [row.deviceId, row]));
}

/** How many recipients of each kind an account has. */
export async function countRecipients(
  sql: Sql,
  accountId: number,
): Promise<{ tokens: number; emails: number; unconfirmed: number; webhooks: number }> {
  const { rows } = await sql.query<{
    tokens: number;
    emails: number;
    unconfirmed: number;
    webhooks: number;
  }>(
    `select coalesce((select jsonb_array_length(apn) from account where id = $1), 0) +
              (select count(*) from push_token where account_id = $1)::integer as tokens,
            count(*) filter (where kind = 'email' and confirmed_at is not null) as emails,
            count(*) filter (where kind = 'email' and confirmed_at is null) as unconfirmed,
            count(*) filter (where kind = 'webhook') as webhooks
       from contact where account_id = $1`,
    [accountId],
  );
  return rows[0] ?? { tokens: 0, emails: 0, unconfirmed: 0, webhooks: 0 };
}
