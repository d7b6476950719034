import { setImmediate } from 'node:timers/promises';
import {
  type Actions,
  type Announced,
  type ChannelName,
  type NewNotification,
  type NotifyResult,
  notificationsAsked,
  Severity,
  severityOf,
} from '../contract/actions.ts';
import type { NotNotified, SenseEvent } from '../contract/event.ts';
import type { DeviceIdentity } from '../contract/uplink.ts';
import type { Sql } from '../db/sql.ts';
import { slicesOf } from '../lib/text.ts';
import { bundleMessages, type DecidedMessage, mostWritten } from './bundles.ts';
import type { Counted, Counter, MessageType, NoticeData } from './channels/channel.ts';
import { channels } from './channels/channels.ts';
import { day, lockCountsOf } from './counts.ts';
import { applyDailyLimits, type Allotted, countedOf, keyOf } from './daily-limits.ts';
import { holdMessages } from './outbox.ts';
import { isLimit, type Reason, reasons } from './reasons.ts';
import {
  candidatesOf,
  type AskedOfAccount,
  createUnsentList,
  type DeviceWords,
  dueChannel,
  type EnqueueOptions,
  findConfigured,
  findSenders,
  listDeviceWords,
  type Sender,
  groupByAccount,
  type Unsent,
} from './recipients.ts';
import { bodyOf, titleOf, type Wording } from './text.ts';
import { findWaiting } from './waiting.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/**
 * Writes messages to people in the caller's transaction: a rollback sends nothing, and a commit loses nothing. There is
 * one row for each recipient, the most urgent first; messages that are not sent share one row for each device, channel,
 * reason and day. Once the day's messages are used up, it locks nothing that others need. `held`: messages whose
 * counters the transaction needs later; it locks them with its own.
 */
export async function enqueueNotifications(
  tx: Sql,
  notifications: Iterable<NewNotification>,
  { held = [], ...options }: EnqueueOptions & { held?: readonly Counted[] },
): Promise<void> {
  const { quotasOf, nowTs, note } = options;
  const unsent = createUnsentList(note);
  const byAccount = groupByAccount(notifications, options, unsent);
  if (byAccount.size === 0) {
    await lockCountsOf(tx, held, { quotasOf, nowTs });
    return;
  }
  const senders = await findSenders(tx, [...byAccount.keys()], nowTs, alarmsIn(byAccount));
  const devices = await findWords(tx, byAccount, unsent.list());
  const candidates = [...byAccount].flatMap(([accountId, asked]) => {
    const sender = senders.get(accountId);
    return sender ? candidatesOf(asked, sender, devices, options, unsent) : [];
  });
  candidates.sort((a, b) => urgencyOf(a) - urgencyOf(b));
  const counted = [...candidates.map(countedOf), ...held];
  const counts = await lockCountsOf(tx, counted, { quotasOf, nowTs });
  const waitingFor = await findWaiting(tx, candidates.map(keyOf), nowTs);
  const queued = applyDailyLimits(candidates, waitingFor, counts.used, quotasOf, unsent, note);
  await writeNotifications(tx, {
    queued,
    unsent: unsent.list(),
    counted: counts.listCounted(),
    wordingOf: wordingFrom(senders, devices, nowTs),
    nowTs,
  });
}

/** 0 critical, 1 warning, 2 info. */
const urgencyOf = ({ notification: { about } }: Pick<Allotted, 'notification'>): number =>
  Severity.options.length - 1 - Severity.options.indexOf(about?.severity ?? 'warning');

const alarmsIn = (byAccount: ReadonlyMap<number, AskedOfAccount>): number[] => [
  ...new Set(
    [...byAccount.values()].flatMap(({ pushes }) =>
      pushes.flatMap(({ about }) => about?.alarmId ?? []),
    ),
  ),
];

async function findWords(
  tx: Sql,
  byAccount: ReadonlyMap<number, AskedOfAccount>,
  refused: { notification: NewNotification }[],
): Promise<Map<number, DeviceWords>> {
  const deviceIds = new Set<number>();
  const sIds = new Set<string>();
  const note = ({ deviceId, event, kind }: NewNotification) => {
    deviceIds.add(deviceId);
    if (kind === 'push') for (const { sId } of event.cause.senses) sIds.add(sId);
  };
  for (const { pushes, toNumbers, beyond } of byAccount.values()) {
    pushes.forEach(note);
    for (const one of toNumbers.values()) for (const { notification } of one) note(notification);
    for (const one of beyond.values())
      for (const { notification } of one.values()) note(notification);
  }
  for (const { notification } of refused) note(notification);
  return listDeviceWords(tx, [...deviceIds], [...sIds]);
}

function wordingFrom(
  senders: ReadonlyMap<number, Sender>,
  devices: ReadonlyMap<number, DeviceWords>,
  nowTs: WallMs,
): (notification: NewNotification) => Wording {
  return ({ accountId, deviceId, deviceUuid }) => {
    const { language = null, timeZone = null } = senders.get(accountId) ?? {};
    const { name, senses = {} } = devices.get(deviceId) ?? {};
    return { language, timeZone, deviceName: name || deviceUuid, senses, nowTs };
  };
}

/** How much is stored of any title, and of the text of a message that is not sent. */
const maxText = 1_000;

type Decided = {
  queued: readonly Allotted[];
  unsent: readonly Unsent[];
  /** How much to add to each counter; the counters are locked. */
  counted: readonly (Counter & { more: number })[];
  wordingOf: (notification: NewNotification) => Wording;
  nowTs: WallMs;
};

/** Rows in one statement: putting their texts together blocks the event loop for that long. */
const rowsAtOnce = 100;
const bundledAtOnce = 500;

/** Writes what was decided. The delivering processes are woken on commit. */
async function writeNotifications(tx: Sql, decided: Decided): Promise<void> {
  const { unsent, nowTs } = decided;
  const queued = decided.queued.slice(0, mostWritten);
  const perNotification = createTexts(decided.wordingOf);
  for (let from = 0; from < Math.max(1, queued.length); from += rowsAtOnce) {
    if (from > 0) await setImmediate();
    const isFirst = from === 0;
    await writeSome(tx, perNotification, {
      ...decided,
      queued: queued.slice(from, from + rowsAtOnce),
      unsent: isFirst ? unsent : [],
      counted: isFirst ? decided.counted : [],
    });
  }
  for (const some of slicesOf(decided.queued.slice(mostWritten), bundledAtOnce)) {
    await setImmediate();
    const bundled = some.map((one) => decidedMessage(one, perNotification, nowTs));
    await bundleMessages(tx, bundled, nowTs);
  }
}

function decidedMessage(
  one: Allotted,
  texts: ReturnType<typeof createTexts>,
  nowTs: WallMs,
): DecidedMessage {
  const { notification, channel: kind, recipient, contactId, dueMs } = one;
  const { accountId, deviceId, about } = notification;
  const { title, engine } = texts.of(notification);
  return {
    accountId,
    deviceId,
    kind,
    recipient,
    contactId,
    title,
    engine,
    type: typeOf(one),
    body: texts.bodyOf(one),
    data: dataOf(one),
    alarmId: about?.alarmId ?? null,
    announcement: about?.announcement ?? null,
    urgency: urgencyOf(one),
    joins: one.joins,
    state: dueMs === undefined ? 'queued' : 'planned',
    dueMs: dueMs ?? nowTs,
  };
}

/** What all recipients of a notification receive alike, made once. */
type Texts = { title: string; body: string; lastBody: string | null; engine: string };

function createTexts(wordingOf: Decided['wordingOf']) {
  const known = new Map<NewNotification, Texts>();
  const of = (notification: NewNotification): Texts => {
    const texts = known.get(notification);
    if (texts) return texts;
    const wording = wordingOf(notification);
    const made = {
      title: cut(titleOf(notification, wording)),
      body: bodyOf(notification, wording, false),
      lastBody: null,
      engine: JSON.stringify(notification.event.cause.engine),
    };
    known.set(notification, made);
    return made;
  };
  return {
    of,
    bodyOf({ notification, isLast }: Allotted): string {
      const texts = of(notification);
      if (!isLast) return texts.body;
      return (texts.lastBody ??= bodyOf(notification, wordingOf(notification), true));
    },
  };
}

async function writeSome(
  tx: Sql,
  texts: ReturnType<typeof createTexts>,
  { queued, unsent, counted, nowTs }: Decided,
): Promise<void> {
  if (queued.length === 0 && unsent.length === 0) return;
  const all = [...queued, ...unsent];
  await tx.query({
    name: 'outbox-write-notifications',
    text: `
      with asked as (
        select * from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[],
                             $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::integer[],
                             $17::bigint[], $18::text[], $20::bigint[], $21::integer[], $22::text[],
                             $23::bigint[], $24::smallint[], $25::boolean[])
          with ordinality
          as a (account_id, device_id, kind, recipient, title, body, engine, state, reason, error, count,
                contact_id, data, alarm_id, announcement, type, due_ms, urgency, joins, place)
      ), counted as (
        update message_count c
           set used = c.used + m.more
          from unnest($12::text[], $13::bigint[], $14::text[], $15::bigint[])
            as m (kind, account_id, key, more)
         where c.kind = m.kind and c.account_id = m.account_id and c.key = m.key
      ), queued as (
        insert into notification
          (account_id, device_id, kind, recipient, title, body, engine, state, contact_id, data, alarm_id,
           announcement, type, urgency, counted_on, due_at, created_at, changed_at)
        select account_id, device_id, kind, recipient, title, body, engine::json, state, contact_id,
               data::json, alarm_id, announcement, type, urgency, case when not joins then ${day('$16')} end,
               ms_to_timestamp(due_ms), ms_to_timestamp($16), ms_to_timestamp($16)
          from asked where state in ('queued', 'planned') order by place
        returning id
      ), unsent as (
        insert into notification as n
          (account_id, device_id, kind, recipient, title, body, engine, state, reason, error, count,
           unsent_day, created_at, changed_at)
        select account_id, device_id, kind, recipient, title, body, engine::json, state, reason, error,
               count, ${day('$16')}, ms_to_timestamp($16), ms_to_timestamp($16)
          from asked where state not in ('queued', 'planned') order by device_id, kind, reason
        on conflict (device_id, kind, reason, unsent_day) where unsent_day is not null do update
          set count = least(n.count::bigint + excluded.count, 2147483647),
              changed_at = excluded.changed_at
      ), told as (
        select pg_notify($19, '') from queued limit 1
      )
      select count(*) from told`,
    values: [
      all.map(({ notification }) => notification.accountId),
      all.map(({ notification }) => notification.deviceId),
      all.map(({ channel }) => channel),
      all.map(({ recipient }) => recipient),
      all.map(({ notification }) => texts.of(notification).title),
      [
        ...queued.map(texts.bodyOf),
        ...unsent.map(({ notification }) => cut(texts.of(notification).body)),
      ],
      all.map(({ notification }) => texts.of(notification).engine),
      [
        ...queued.map(({ dueMs }) => (dueMs === undefined ? 'queued' : 'planned')),
        ...unsent.map(({ reason }) => (isLimit(reason) ? 'held-back' : 'failed')),
      ],
      [...queued.map(() => null), ...unsent.map(({ reason }) => reason)],
      [...queued.map(() => null), ...unsent.map(({ reason }) => reasons[reason])],
      [...queued.map(() => 1), ...unsent.map(({ count }) => count)],
      counted.map(({ kind }) => kind),
      counted.map(({ accountId }) => accountId),
      counted.map(({ key }) => key),
      counted.map(({ more }) => more),
      nowTs,
      [...queued.map(({ contactId }) => contactId), ...unsent.map(() => null)],
      [...queued.map(dataOf), ...unsent.map(() => null)],
      dueChannel,
      all.map(({ notification }) => notification.about?.alarmId ?? null),
      all.map(({ notification }) => notification.about?.announcement ?? null),
      [...queued.map(typeOf), ...unsent.map(() => 'notice')],
      [...queued.map(({ dueMs }) => dueMs ?? nowTs), ...unsent.map(() => nowTs)],
      all.map(urgencyOf),
      [...queued.map(({ joins }) => joins), ...unsent.map(() => false)],
    ],
  });
}

const typeOf = ({ notification, dueMs }: Allotted): MessageType =>
  dueMs === undefined ? (notification.about?.type ?? 'notice') : 'escalated';

/** Only for webhooks and alarms, whose end may be reported by another message. All others are text only. */
function dataOf({ channel, notification }: Allotted): string | null {
  if (!channels[channel].isForPrograms && (notification.about?.alarmId ?? null) === null)
    return null;
  const { engine, senses } = notification.event.cause;
  const data: NoticeData = { engine, senses };
  return JSON.stringify(data);
}

const cut = (text: string) => text.slice(0, maxText).toWellFormed();

/** A request to notify people. */
export type Ask = Omit<Announced, 'severity'> & {
  device: DeviceIdentity;
  event: SenseEvent;
  actions: Actions;
  /** The event's name; empty if it has none. */
  name: string;
};

type NotifyOptions = Omit<EnqueueOptions, 'configured' | 'note'> & {
  /** The channels of this process; those of other processes are read from the database. */
  ownChannels: readonly ChannelName[];
};

/** What `notify` needs besides the time. */
export type NotifyRules = Omit<NotifyOptions, 'nowTs'>;

/**
 * Queues the messages of each ask in the caller's transaction. Returns for each ask, in order, how many messages it
 * makes, or why it makes none. `ending`: alarms whose messages the transaction ends afterwards.
 */
export async function notify(
  tx: Sql,
  asks: readonly Ask[],
  { ending = [], ...options }: NotifyOptions & { ending?: readonly number[] },
): Promise<NotifyResult[]> {
  if (asks.length === 0 && ending.length === 0) return [];
  const { ownChannels, ...rest } = options;
  const held = ending.length === 0 ? [] : await holdMessages(tx, ending);
  const configured =
    asks.length === 0
      ? new Set<ChannelName>()
      : await findConfigured(tx, ownChannels, options.nowTs);
  const tallies = asks.map(() => ({ queued: 0, planned: 0, reasons: new Set<Reason>() }));
  const placeOf = new Map<NewNotification, number>();
  for (const [place, ask] of asks.entries())
    for (const notification of notificationsOf(ask)) placeOf.set(notification, place);
  await enqueueNotifications(tx, placeOf.keys(), {
    ...rest,
    held,
    configured,
    note: (notification, decided) => {
      const tally = tallies[placeOf.get(notification) ?? -1];
      if (!tally) return;
      if (decided === 'queued' || decided === 'planned') tally[decided] += 1;
      else tally.reasons.add(decided);
    },
  });
  return tallies.map(({ queued, planned, reasons }) => ({
    queued,
    planned,
    notNotified: queued + planned > 0 ? null : strongestReason(reasons),
  }));
}

function notificationsOf(ask: Ask): NewNotification[] {
  const { device, event, actions, name, ...about } = ask;
  const { type, alarmId, announcement, sinceTs, lastHeardTs } = about;
  const severity = severityOf(actions);
  const announced: Announced = { type, alarmId, announcement, severity, sinceTs, lastHeardTs };
  return [...notificationsAsked(actions, { device, event, name })].map((notification) => ({
    ...notification,
    about: announced,
  }));
}

/** The first reason that applies. An invalid number counts as no recipient. */
function strongestReason(reasons: ReadonlySet<Reason>): NotNotified {
  const all = [...reasons];
  if (all.some(isLimit)) return 'held-back';
  if (all.some((reason) => reason === 'sms-not-allowed' || reason === 'number-refused'))
    return 'not-allowed';
  const isMissing = (reason: Reason) =>
    Object.values(channels).some(({ unconfigured }) => unconfigured === reason);
  return all.some(isMissing) ? 'not-configured' : 'no-recipient';
}

/** A message to a contact that no firing requests; `title` and `body` are empty if they are made on delivery. */
export type NewDirect = {
  accountId: number;
  channel: 'email' | 'webhook';
  type: 'confirm' | 'test' | 'notice' | 'closed';
  contactId: number;
  recipient: string;
  title: string;
  body: string;
  /** It is sent with another, and counts with that. */
  joins: boolean;
  /** When it is sent, ms. Absent: now. */
  dueMs?: number;
  /** The alarm that it is about. */
  about?: { deviceId: number; alarmId: number; announcement: number; data: NoticeData };
};

/** Writes messages to contacts that no firing requests, and counts them. */
export async function writeDirect(
  tx: Sql,
  messages: NewDirect[],
  { counted, nowTs }: Pick<Decided, 'counted' | 'nowTs'>,
): Promise<void> {
  for (const [n, some] of slicesOf(messages.slice(0, mostWritten), rowsAtOnce).entries()) {
    if (n > 0) await setImmediate();
    await writeSomeDirect(tx, some, { counted: n === 0 ? counted : [], nowTs });
  }
  for (const some of slicesOf(messages.slice(mostWritten), bundledAtOnce)) {
    await setImmediate();
    await bundleMessages(
      tx,
      some.map((one) => decidedDirect(one, nowTs)),
      nowTs,
    );
  }
}

function decidedDirect(
  { channel: kind, dueMs, about, ...message }: NewDirect,
  nowTs: WallMs,
): DecidedMessage {
  return {
    ...message,
    kind,
    urgency: 1,
    deviceId: about?.deviceId ?? null,
    data: about ? JSON.stringify(about.data) : null,
    engine: about ? JSON.stringify(about.data.engine) : null,
    alarmId: about?.alarmId ?? null,
    announcement: about?.announcement ?? null,
    state: 'queued',
    dueMs: dueMs ?? nowTs,
  };
}

async function writeSomeDirect(
  tx: Sql,
  messages: NewDirect[],
  { counted, nowTs }: Pick<Decided, 'counted' | 'nowTs'>,
): Promise<void> {
  await tx.query(
    `with counted as (
       update message_count c
          set used = c.used + m.more
         from unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[])
           as m (kind, account_id, key, more)
        where c.kind = m.kind and c.account_id = m.account_id and c.key = m.key
     ), told as (select pg_notify($13, ''))
     insert into notification
       (account_id, kind, type, contact_id, recipient, title, body, device_id, alarm_id, announcement, data,
        engine, counted_on, due_at, created_at, changed_at)
     select account_id, kind, type, contact_id, recipient, title, body, device_id, alarm_id, announcement,
            data::json, data::json -> 'engine', case when not joins then ${day('$12')} end,
            ms_to_timestamp(due_ms), ms_to_timestamp($12), ms_to_timestamp($12)
       from told
      cross join unnest($5::bigint[], $6::text[], $7::text[], $8::bigint[], $9::text[], $10::text[],
                        $11::text[], $14::bigint[], $15::bigint[], $16::integer[], $17::text[],
                        $18::boolean[], $19::bigint[])
         as n (account_id, kind, type, contact_id, recipient, title, body, device_id, alarm_id,
               announcement, data, joins, due_ms)`,
    [
      counted.map(({ kind }) => kind),
      counted.map(({ accountId }) => accountId),
      counted.map(({ key }) => key),
      counted.map(({ more }) => more),
      messages.map(({ accountId }) => accountId),
      messages.map(({ channel }) => channel),
      messages.map(({ type }) => type),
      messages.map(({ contactId }) => contactId),
      messages.map(({ recipient }) => recipient),
      messages.map(({ title }) => title),
      messages.map(({ body }) => body),
      nowTs,
      dueChannel,
      messages.map(({ about }) => about?.deviceId ?? null),
      messages.map(({ about }) => about?.alarmId ?? null),
      messages.map(({ about }) => about?.announcement ?? null),
      messages.map(({ about }) => (about ? JSON.stringify(about.data) : null)),
      messages.map(({ joins }) => joins),
      messages.map(({ dueMs }) => dueMs ?? nowTs),
    ],
  );
}
