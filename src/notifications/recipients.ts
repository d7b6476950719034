import type { NewNotification } from '../contract/actions.ts';
import type { CauseDetail, CauseSense, EngineCause } from '../contract/event.ts';
import { normalizePhoneNumber } from '../contract/values.ts';
import type { Sql } from '../db/sql.ts';
import type { Reason } from './reasons.ts';
import type { MessageQuotas } from './settings.ts';
import type { SenseWordsBySId } from './text.ts';
import type { WallMs } from '../lib/clock-readings.ts';

export type EnqueueOptions = {
  /** What may be sent on one day (UTC); what is beyond is held back. */
  quotasOf: (accountId: number) => MessageQuotas;
  isAllowedNumber: NumberRule;
  /** No account needs the operator's permission for SMS. */
  isSmsForAll: boolean;
  nowTs: WallMs;
  /** Channels that a process which delivers has; absent: all. Others are sent nothing. */
  configured?: ReadonlySet<MessageChannel>;
  /** Told what becomes of each message for each recipient. */
  note?: Note;
};

/** What was decided of a message for one recipient; a reason: why it is not sent. */
export type Note = (notification: NewNotification, decided: 'queued' | 'planned' | Reason) => void;

/** By what a message goes. */
export type MessageChannel = 'push' | 'sms' | 'email' | 'webhook';

/** A message for one recipient, not yet counted. `contactId`: null where it is no contact. */
export type MessageCandidate = {
  notification: NewNotification;
  channel: MessageChannel;
  recipient: string;
  contactId: number | null;
  /** Absent: it is sent now. Later it is sent only if its alarm is then still open and not acknowledged. */
  dueMs?: number;
};

/** What will not be sent, of one device and for one reason: what the first one was, and how many. */
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

/** One entry for each device, channel and reason, however many there are. */
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

/** What the notifications of one account are, in the order in which they were asked for. */
export type AskedOfAccount = {
  /** Each is for all of the account's push tokens and contacts. */
  pushes: NewNotification[];
  sms: MessageCandidate[];
  /** More than the account may send on a day, whatever else is decided: how many, by device. */
  beyond: Record<NewNotification['kind'], Map<number, Beyond>>;
};

type Beyond = {
  notification: NewNotification;
  recipient: string;
  count: number;
  /** Kept where somebody asks what became of each. */
  all: NewNotification[];
};

// Some of those that are looked at may be refused for their number, and the next ones are sent then.
const spareSms = 200;

/**
 * Sorts notifications by account. What is certainly too much for a day is counted and not kept: one
 * message may ask for tens of thousands.
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

/** What a message that goes out says of its alarm as it is by now. */
export type AlarmNow = {
  alarmId: number;
  acknowledgedTs: number | null;
  snoozedUntilTs: number | null;
  closedTs: number | null;
};

/** What messages need of the alarms that they are about; both rooms are brought together by assembly/. */
export type AlarmPort = {
  /** Those that still exist. */
  listAlarmsNow: (sql: Sql, alarmIds: readonly number[]) => Promise<AlarmNow[]>;
  /** Nobody else settles messages of these alarms, nor changes them, until the transaction ends. */
  lockAlarms: (tx: Sql, alarmIds: readonly number[]) => Promise<void>;
  /** A message of this announcement reached somebody; told again it changes nothing. */
  noteNotified: (tx: Sql, alarmId: number, of: OfAnnouncement) => Promise<void>;
  /** None of the messages of this announcement did, and none is left. */
  takeBack: (tx: Sql, alarmId: number, of: OfAnnouncement) => Promise<void>;
  /** Alarms of this account may have changed, and that is committed. */
  onChanged: (accountId: number) => void;
};

/** `nowTs`: when its last message ended, ms. */
type OfAnnouncement = { announcement: number; nowTs: WallMs };

/** Whether SMS may be sent to a number that is normalized. */
export type NumberRule = (number: string) => boolean;

/**
 * Of the prefixes that a number begins with the longest decides: `+49` allows, `!+49900` refuses. A
 * number with none of them is refused.
 */
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

/** Says for some minutes that a process with these channels delivers; of those that are long gone nothing is kept. */
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

/** Processes renew what they have each minute. */
const seenWithinMs = 180_000;

/**
 * The channels of this process and of others that deliver now. A log that takes SMS counts here (`sms-log`),
 * not where people are shown what is configured.
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

/** The messages of an account that may have room; the others are counted as unsent. */
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
    // A message has room for all whom it is for, or for none: as long as there is any, all are looked at.
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

/** Contacts that wait are told of alarms, once of each. */
const mayPlan = ({ about }: NewNotification, { escalatedIds }: ContactOf): boolean =>
  about?.type === 'opened' && about.alarmId !== null && !escalatedIds.includes(about.alarmId);

/** A contact without labels is told of all devices. */
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

/** The channel on which a process that has committed messages says so to those that deliver. */
export const dueChannel = 'sensorium_due';

export type MessageType =
  'notice' | 'confirm' | 'test' | 'opened' | 'repeated' | 'escalated' | 'closed';

/** What is kept of an event beside the text. */
export type NoticeData = {
  engine: EngineCause;
  senses: CauseSense[];
  why?: CauseDetail[];
  /** Of an alarm that is over: by what. */
  closedBy?: string;
};

/** Whose turn it is: a contact, or a push token or telephone number of an account. */
export type RecipientKey = {
  accountId: number;
  kind: MessageChannel;
  recipient: string;
  contactId: number | null;
};

/**
 * What has places of its own. Webhooks have three kinds: those that answered the last time, those that were
 * never tried, and those that nobody answered the last time.
 */
export type Lane = MessageChannel | 'webhook-new' | 'webhook-unanswered';

/** A message whose recipient's turn it is; the recipient is busy until it is settled. */
export type Delivery = RecipientKey & {
  id: number;
  lane: Lane;
  /** Of a webhook, with its port. */
  host: string | null;
  /** Null where it is no contact. */
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
  /** How often it was tried, this time included. */
  attempts: number;
  isDisabled: boolean;
  /** True of what needs no confirmation. */
  isConfirmed: boolean;
  isUnsubscribed: boolean;
  /** Whether the device has one of the contact's labels by now, or needs none. */
  isSuiting: boolean;
  alarmId: number | null;
  announcement: number | null;
  /** Its recipient had many messages lately: all that waits for it goes out as one. */
  isGathering: boolean;
};

const today = (parameter: string) => `(ms_to_timestamp(${parameter}) at time zone 'UTC')::date`;

/** A contact that messages may be sent to now. */
type ContactOf = {
  contactId: number;
  kind: 'email' | 'webhook';
  address: string;
  labels: string[];
  /** It is told so much later, if the alarm is then still open. */
  afterMs: number;
  /** The alarms, of those asked for, that it is or was told of so. */
  escalatedIds: number[];
};

/** An account that has something to say, and what it has said today; others may be counting meanwhile. */
export type Sender = {
  accountId: number;
  maySendSms: boolean;
  /** Each once: those of `apn` in the account's order, then those of sessions. */
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

/** What messages about a device say of it. `senses`: those that were asked for and have words. */
export type DeviceWords = {
  deviceId: number;
  name: string | null;
  labels: string[];
  senses: SenseWordsBySId;
};

/**
 * Escapes in stored JSON that PostgreSQL has no text for: reading them would fail the transaction of the
 * measurements. The first versions stored them; such a device is told of without words for its senses.
 */
const unreadable = String.raw`\\u(0000|d[89a-f])`;

const arrayAt = (path: string) =>
  `case when json_typeof(${path}) = 'array' then ${path} else '[]' end`;

/** Of the devices that messages are about, with the senses that these name. */
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

/** How many recipients an account has for what events push. */
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
