import {
  type ChannelName,
  isAtLeast,
  type NewNotification,
  type PhoneChannel,
  type Severity,
} from '../contract/actions.ts';
import { normalizePhoneNumber } from '../contract/values.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import type { MessageQuotas } from './channels/channel.ts';
import { channels } from './channels/channels.ts';
import type { Reason } from './reasons.ts';
import type { SenseWordsBySId } from './text.ts';
import { isGathered, joiningPerMessage } from './waiting.ts';
import type { WallMs } from '../lib/clock-readings.ts';

export type EnqueueOptions = {
  /** What an account may send on one day (UTC); messages over that limit are held back. */
  quotasOf: (accountId: number) => MessageQuotas;
  isAllowedNumber: NumberRule;
  /** Accounts need no permission from the operator to send SMS. */
  isSmsForAll: boolean;
  nowTs: WallMs;
  /** The channels of all processes that deliver; nothing is sent by any other. Absent: all channels. */
  configured?: ReadonlySet<ChannelName>;
  /** Called with the decision for each message and recipient. */
  note?: Note;
};

/** Called with the decision for one recipient; a `Reason` says why the message is not sent. */
export type Note = (notification: NewNotification, decided: 'queued' | 'planned' | Reason) => void;

/** A message for one recipient, before limits are applied. `contactId`: null if the recipient is not a contact. */
export type MessageCandidate = {
  notification: NewNotification;
  channel: ChannelName;
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
  /** For telephone numbers, by channel. */
  toNumbers: Map<PhoneChannel, MessageCandidate[]>;
  /** Those that exceed the day's limits whatever else is decided, as a count for each kind and device. */
  beyond: Map<NewNotification['kind'], Map<number, Beyond>>;
};

type Beyond = {
  notification: NewNotification;
  recipient: string;
  count: number;
  /** Kept if the caller wants the decision for each. */
  all: NewNotification[];
};

// How many more SMS than the limit to look at: some numbers may be refused, and later ones then take their place.
const spareNumbers = 200;

/** The daily limits that a push can count for: those of the channels to tokens and contacts. */
const dailyOfPushes = Object.values(channels)
  .filter(({ reaches }) => reaches !== 'numbers')
  .map(({ daily }) => daily);

const dailyOfPeople = new Set(
  (Object.keys(channels) as ChannelName[])
    .filter((kind) => isGathered({ kind }))
    .map((kind) => channels[kind].daily),
);

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
      if (asked.pushes.length < Math.max(...dailyOfPushes.map(({ quota }) => quotas[quota])))
        asked.pushes.push(notification);
      else countBeyond(asked, { notification, recipient: '' }, note);
      continue;
    }
    const { phoneNumber } = notification;
    let candidates = asked.toNumbers.get(kind);
    if (!candidates) asked.toNumbers.set(kind, (candidates = []));
    if (candidates.length >= quotas[channels[kind].daily.quota] + spareNumbers) {
      countBeyond(asked, { notification, recipient: phoneNumber }, note);
      continue;
    }
    let verdict = judged.get(phoneNumber);
    if (!verdict) judged.set(phoneNumber, (verdict = checkNumber(phoneNumber, isAllowedNumber)));
    const candidate = { notification, channel: kind, contactId: null };
    if ('refused' in verdict) unsent.add({ ...candidate, recipient: phoneNumber }, verdict.refused);
    else candidates.push({ ...candidate, recipient: verdict.number });
  }
  return byAccount;
}

const nothingAsked = (): AskedOfAccount => ({
  pushes: [],
  toNumbers: new Map(),
  beyond: new Map(),
});

function countBeyond(
  { beyond }: AskedOfAccount,
  { notification, recipient }: Pick<Beyond, 'notification' | 'recipient'>,
  note: Note | undefined,
): void {
  const { deviceId, kind } = notification;
  let ofKind = beyond.get(kind);
  if (!ofKind) beyond.set(kind, (ofKind = new Map()));
  let entry = ofKind.get(deviceId);
  if (!entry) ofKind.set(deviceId, (entry = { notification, recipient, count: 0, all: [] }));
  entry.count += 1;
  if (note) entry.all.push(notification);
}

function checkNumber(
  phoneNumber: string,
  isAllowedNumber: EnqueueOptions['isAllowedNumber'],
): { number: string } | { refused: Reason } {
  const number = normalizePhoneNumber(phoneNumber);
  if (number === null) return { refused: 'number-form' };
  return isAllowedNumber(number) ? { number } : { refused: 'number-refused' };
}

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

/** Marks the name of a channel that only writes to the log. */
export const logSuffix = '-log';

/** The channels that running delivery processes have announced; with `-log` behind those that only write to the log. */
export async function listAnnounced(sql: Sql, nowTs: WallMs): Promise<string[]> {
  const { rows } = await sql.query<{ channel: string }>({
    name: 'outbox-list-announced',
    text: `select distinct unnest(channels) as channel
             from delivering_process where seen_at > ms_to_timestamp($1)`,
    values: [nowTs - seenWithinMs],
  });
  return rows.map(({ channel }) => channel);
}

/**
 * The channels of this process and of all others that deliver now. A log that takes SMS (`sms-log`) counts as a channel
 * here, but not where people see what is configured.
 */
export async function findConfigured(
  sql: Sql,
  ownChannels: readonly ChannelName[],
  nowTs: WallMs,
): Promise<Set<ChannelName>> {
  const announced = await listAnnounced(sql, nowTs);
  const others = announced.map((channel) => channel.replace(logSuffix, '') as ChannelName);
  return new Set([...ownChannels, ...others]);
}

type Devices = ReadonlyMap<number, Pick<DeviceWords, 'labels'>>;

/** The messages of an account that may fit the limits; the others are added to `unsent`. */
export function candidatesOf(
  asked: AskedOfAccount,
  sender: Sender,
  devices: Devices,
  options: EnqueueOptions,
  unsent: UnsentList,
): MessageCandidate[] {
  return [
    ...pushCandidates(asked, sender, devices, options, unsent),
    ...numberCandidates(asked, sender, options, unsent),
  ];
}

function pushCandidates(
  { pushes, beyond }: AskedOfAccount,
  { accountId, tokens, contacts, usedToday }: Sender,
  devices: Devices,
  { quotasOf, configured, nowTs, note }: EnqueueOptions,
  unsent: UnsentList,
): MessageCandidate[] {
  const quotas = quotasOf(accountId);
  const recipientsOf = (notification: NewNotification): MessageCandidate[] => [
    ...tokens.map((token) => ({
      notification,
      channel: 'push' as const,
      recipient: token,
      contactId: null,
    })),
    ...contacts
      .filter(({ labels }) => suits(labels, devices.get(notification.deviceId)?.labels ?? []))
      .filter(({ minSeverity }) =>
        isAtLeast(notification.about?.severity ?? 'warning', minSeverity),
      )
      .filter((contact) => contact.afterMs === 0 || mayPlan(notification, contact))
      .map(({ kind, contactId, address: recipient, afterMs }) => ({
        notification,
        channel: kind,
        recipient,
        contactId,
        ...(afterMs > 0 && { dueMs: nowTs + afterMs }),
      })),
  ];
  for (const { notification, count, all } of beyond.get('push')?.values() ?? [])
    for (const candidate of recipientsOf(notification)) {
      const { reason } = channels[candidate.channel].daily;
      unsent.add(candidate, reason, count);
      for (const one of all) note?.(one, reason);
    }
  const left: Record<string, number> = {};
  for (const { kind, quota } of dailyOfPushes) left[kind] = quotas[quota] - (usedToday[kind] ?? 0);
  // Many of them may join the first few.
  for (const { kind, quota } of dailyOfPeople)
    if ((left[kind] ?? 0) > 0) left[kind] = (left[kind] ?? 0) + joiningPerMessage * quotas[quota];
  // As many as may join on a whole day.
  const joining: Record<string, number> = {};
  for (const { kind, quota } of dailyOfPeople) joining[kind] = joiningPerMessage * quotas[quota];
  const candidates: MessageCandidate[] = [];
  for (const notification of pushes) {
    // If the limit is not reached yet when a notification comes up, all its recipients become candidates.
    const before = { ...left };
    for (const candidate of recipientsOf(notification)) {
      const { unconfigured, daily } = channels[candidate.channel];
      if (configured && !configured.has(candidate.channel)) {
        unsent.add(candidate, unconfigured);
        continue;
      }
      const waits = contacts.some((one) => one.waits && one.contactId === candidate.contactId);
      if ((before[daily.kind] ?? 0) <= 0) {
        if (!waits || (joining[daily.kind] ?? 0) <= 0) {
          unsent.add(candidate, daily.reason);
          continue;
        }
        joining[daily.kind] = (joining[daily.kind] ?? 0) - 1;
      }
      left[daily.kind] = (left[daily.kind] ?? 0) - 1;
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

function numberCandidates(
  { toNumbers, beyond }: AskedOfAccount,
  { accountId, maySendSms, usedToday }: Sender,
  { quotasOf, isSmsForAll, configured, note }: EnqueueOptions,
  unsent: UnsentList,
): MessageCandidate[] {
  const isAllowed = maySendSms || isSmsForAll;
  const quotas = quotasOf(accountId);
  return [...toNumbers].flatMap(([channel, candidates]) => {
    const { daily, unconfigured } = channels[channel];
    const reason = isAllowed ? daily.reason : 'sms-not-allowed';
    for (const { notification, recipient, count, all } of beyond.get(channel)?.values() ?? []) {
      unsent.add({ notification, channel, recipient }, reason, count);
      for (const one of all) note?.(one, reason);
    }
    const isWithinQuota = isAllowed && (usedToday[daily.kind] ?? 0) < quotas[daily.quota];
    if (isWithinQuota && (configured?.has(channel) ?? true)) return candidates;
    for (const candidate of candidates)
      unsent.add(candidate, isWithinQuota ? unconfigured : reason);
    return [];
  });
}

/** The channel (LISTEN/NOTIFY) that wakes the delivering processes when messages were committed. */
export const dueChannel = 'sensorium_due';

const today = (parameter: string) => `(ms_to_timestamp(${parameter}) at time zone 'UTC')::date`;

/** A contact that may receive messages now. */
type ContactOf = {
  contactId: number;
  kind: 'email' | 'webhook';
  address: string;
  labels: string[];
  /** It is notified of nothing less bad. */
  minSeverity: Severity;
  /** The delay before the contact is notified, if the alarm is then still open. */
  afterMs: number;
  /** Which of the requested alarms it was, or will be, notified of with that delay. */
  escalatedIds: number[];
  /** Messages wait for this person; others may join them. */
  waits: boolean;
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
  /** By the kind of counter, of the limits that are of the account. */
  usedToday: Record<string, number>;
};

const dailyKinds = [...new Set(Object.values(channels).map(({ daily }) => `'${daily.kind}'`))];

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
                                                         'minSeverity', c.min_severity,
                                                         'afterMs', c.after_ms,
                                                         'waits', c.kind = 'email' and exists (
                                         select from notification w
                                          where w.contact_id = c.id and w.state = 'queued'),
                                                         'escalatedIds', array(
                                         select n.alarm_id from notification n
                                          where n.alarm_id = any ($3) and n.contact_id = c.id
                                            and n.type = 'escalated' and c.after_ms > 0
                                            and n.state in ('planned', 'queued', 'sent', 'logged')))
                                       order by c.kind, c.place, c.id), '[]')
                from contact c
               where c.account_id = account.id
                 and (c.kind = 'webhook' or c.confirmed_at is not null)) as contacts,
             (select coalesce(json_object_agg(kind, used), '{}') from message_count
               where kind in (${dailyKinds.join(', ')}) and account_id = account.id and key = ''
                 and day >= ${today('$2')}) as "usedToday"
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

/** How many of each kind. `severities`: what contacts that can be reached are notified of, at least. */
type Recipients = {
  tokens: number;
  emails: number;
  unconfirmed: number;
  webhooks: number;
  severities: Severity[];
};

/** How many recipients of each kind an account has. */
export async function countRecipients(sql: Sql, accountId: number): Promise<Recipients> {
  const { rows } = await sql.query<Recipients>(
    `select (select count(distinct token)
               from (select entry ->> 'token' as token
                       from account cross join jsonb_array_elements(apn) as e (entry)
                      where id = $1
                     union all
                     select token from push_token where account_id = $1) as t) as tokens,
            count(*) filter (where kind = 'email' and confirmed_at is not null) as emails,
            count(*) filter (where kind = 'email' and confirmed_at is null) as unconfirmed,
            count(*) filter (where kind = 'webhook') as webhooks,
            coalesce(array_agg(distinct min_severity)
              filter (where kind <> 'email' or confirmed_at is not null), '{}') as severities
       from contact where account_id = $1`,
    [accountId],
  );
  return rows[0] ?? { tokens: 0, emails: 0, unconfirmed: 0, webhooks: 0, severities: [] };
}

/**
 * Removes a push token that the push service reports as dead, wherever the account has it. This takes two transactions:
 * whoever locks the account's row deletes its tokens on another connection, and neither may wait for the other.
 */
export async function removePushToken(
  sql: Database,
  accountId: number,
  token: string,
): Promise<void> {
  await sql.query('delete from push_token where account_id = $1 and token = $2', [
    accountId,
    token,
  ]);
  await sql.query(
    `update account
        set apn = (
          select coalesce(jsonb_agg(entry order by place), '[]')
            from jsonb_array_elements(apn) with ordinality as e (entry, place)
           where entry ->> 'token' is distinct from $2
        )
      where id = $1 and apn @> jsonb_build_array(jsonb_build_object('token', $2::text))`,
    [accountId, token],
  );
}

/** Whether an account still has a push token: in `apn`, or in one of its sessions. */
export async function hasPushToken(sql: Sql, accountId: number, token: string): Promise<boolean> {
  const { rowCount } = await sql.query(
    `select from push_token where account_id = $1 and token = $2
      union all
     select from account
      where id = $1 and apn @> jsonb_build_array(jsonb_build_object('token', $2::text))`,
    [accountId, token],
  );
  return (rowCount ?? 0) > 0;
}

/** Whether the account may send SMS, if not all accounts may. */
export async function maySendSms(sql: Sql, accountId: number): Promise<boolean> {
  const { rows } = await sql.query<{ may: boolean }>(
    'select may_send_sms as may from account where id = $1',
    [accountId],
  );
  return rows[0]?.may ?? false;
}
