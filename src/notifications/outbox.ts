/**
 * The outbox: from rows of `notification` to recipients. `enqueue.ts` writes a row for each recipient in the
 * transaction that stores the event or alarm.
 *
 * Of a storm of alarms some rows are bundled at first (`bundles.ts`).
 *
 * - A crash before the commit: neither the event nor the message exists.
 * - A crash after it loses nothing: the row stays `queued` until a delivery is settled. A message that waits for more
 *   than a day fails as `too-late`.
 * - A crash during a delivery repeats it: the recipient stays busy until its lease ends, then the message is sent
 *   again, even if the provider had accepted it. So a message arrives at least once; a webhook recognises the copy by
 *   its `webhook-id`, a mail program by its `Message-ID`, and people may get a push message or an SMS twice. A summary
 *   is sent again with the messages that it had, and nothing is sent with one whose copy may have arrived: whoever
 *   drops the second of two copies misses nothing.
 *
 * A recipient's row (`contact`, `recipient_turn`) is its lock, so no two processes send to one recipient at a time. A
 * recipient's most urgent due message is next, of these the oldest, and the messages about an alarm stay in order: the
 * message that it has begun goes before the message that it is over.
 *
 * Whoever changes alarms or messages about them locks, in this order, all rows of one kind before the next:
 * 1. the devices, by ascending number (`loadDevices`, `lockAlarms`, `lockAlarmsOf`),
 * 2. the alarms, by ascending number (`loadDevices`, `lockRows`),
 * 3. bundles and planned messages, by ascending number (`holdMessages`),
 * 4. the counters of messages, by name, in one statement (`lockCountsOf`, `refund`),
 * so that no two transactions wait for each other.
 */

import { type Announcement, lockAlarms, noteNotified, takeBack } from '../alarms/store.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import type { Counted, Delivery, MessageQuotas, Places, RecipientKey } from './channels/channel.ts';
import { channels } from './channels/channels.ts';
import { isWaiting, unbundleAlarm, unbundlePlanned } from './bundles.ts';
import { countersOf } from './daily-limits.ts';
import type { Reason } from './reasons.ts';
import { dueChannel } from './recipients.ts';
import { gatherAfter, gathersUntil, isCutOff } from './waiting.ts';
import type { WallMs } from '../lib/clock-readings.ts';

type DueQuery = {
  nowTs: WallMs;
  /** How many to claim in each lane, at most. */
  places: Places;
  perAccount: number;
  perHost: number;
  /** The deliveries under way in this process. */
  underWay: readonly Pick<Delivery, 'accountId' | 'lane' | 'host'>[];
  /** A recipient that is not settled is free again after this time: its process has ended. */
  leaseMs: number;
};

/** None of the three columns lies this far ahead, unless a clock that ran ahead wrote it and has been set back. */
const longestHoldMs = 2 * 86_400_000;

const isPast = (until: string) => `
  (coalesce(${until}, '-infinity') <= ms_to_timestamp($1)
   or ${until} > ms_to_timestamp($1 + ${longestHoldMs}))`;

const isFree = (row: string) => `
  ${isPast(`${row}.busy_until`)}
  and ${isPast(`${row}.rests_until`)}
  and ${isPast(`${row}.gathers_until`)}`;

const isDirect = `state = 'queued' and contact_id is null and due_at is not null`;

/** A retry goes before later messages about its alarm, so that its end is not told before its begin. */
const isNext = `
  not exists (
    select from notification before
     where before.alarm_id = n.alarm_id and before.id < n.id and before.state = 'queued'
       and before.grouped_in is null and before.account_id = n.account_id and before.kind = n.kind
       and before.recipient = n.recipient and before.contact_id is not distinct from n.contact_id)`;

/** The device and account that it is about still exist. */
const isThere = `
  (n.device_id is null
   or exists (select from device d where d.id = n.device_id and d.account_id is not null))
  and not exists (select from account a where a.id = n.account_id and a.removed_at is not null)`;

const firstOf = (whose: string) => `
  (select id, due_at from notification n
    where ${whose} and n.state = 'queued' and n.grouped_in is null and ${isThere}
      and n.due_at <= ms_to_timestamp($1) and ${isNext}
    order by n.urgency, n.due_at, n.id limit 1) as first`;

/** The waiting recipients, by a loose index scan: a thousand messages to one recipient cost as much as one. */
const waiting = `
  contacts as (
    (select contact_id from notification
      where state = 'queued' and contact_id is not null
      order by contact_id limit 1)
    union all
    select (select n.contact_id from notification n
             where n.state = 'queued' and n.contact_id > w.contact_id
             order by n.contact_id limit 1)
      from contacts w where w.contact_id is not null
  ), direct as (
    (select account_id, kind, recipient from notification
      where ${isDirect}
      order by account_id, kind, recipient limit 1)
    union all
    select n.*
      from direct w
     cross join lateral (
       select account_id, kind, recipient from notification
        where ${isDirect} and (account_id, kind, recipient) > (w.account_id, w.kind, w.recipient)
        order by account_id, kind, recipient limit 1) as n
  )`;

type Taken = Delivery & { id: number | null };

/**
 * Webhooks are split by how their last delivery ended. Those that did not answer share a few places and those that were
 * never tried have their own, so neither delays the ones that do answer.
 */
const laneOf = `
  case when c.kind <> 'webhook' then c.kind
       when c.last_reason = 'no-answer' then 'webhook-unanswered'
       when c.last_at is null then 'webhook-new'
       else 'webhook' end`;

/** Host and port of the normalized URL. */
const hostOf = `case when c.kind = 'webhook' then substring(c.address_normal from '^[a-z]+://([^/?#]*)') end`;

/**
 * Claims the next messages. A recipient that is neither busy nor resting gets its most urgent due message, but no
 * message about an alarm before an earlier one. Each account's recipients go in order of who was served longest ago,
 * and so do the accounts, in each lane; one host of webhooks gets at most `perHost`. The row of the contact or
 * recipient is its lock, between processes too.
 */
export async function claimMessages(
  sql: Sql,
  { nowTs, places, perAccount, perHost, underWay, leaseMs }: DueQuery,
): Promise<Delivery[]> {
  const { rows } = await sql.query<Taken>({
    name: 'outbox-take-turns',
    text: `
      with recursive ${waiting}, ready as (
        select c.id as contact_id, c.account_id, c.kind, ${laneOf} as lane, ${hostOf} as host,
               c.address as recipient, c.served_at, first.id as notification_id, first.due_at
          from contacts w
          join contact c on c.id = w.contact_id
         cross join lateral ${firstOf('n.contact_id = c.id')}
         where ${isFree('c')}
        union all
        select null, w.account_id, w.kind, w.kind, null, w.recipient, t.served_at, first.id, first.due_at
          from direct w
          left join recipient_turn t
            on t.account_id = w.account_id and t.kind = w.kind and t.recipient = w.recipient
         cross join lateral ${firstOf(
           `n.account_id = w.account_id and n.kind = w.kind and n.recipient = w.recipient
            and n.contact_id is null`,
         )}
         where ${isFree('t')}
      ), under_way as (
        select * from unnest($3::bigint[], $7::text[], $8::text[]) as b (account_id, lane, host)
      ), ranked as (
        -- What nobody answered is counted apart: an account's receivers that hang do not delay its others.
        select r.*, max(served_at) over account as account_served_at,
               row_number() over (partition by account_id, lane = 'webhook-unanswered'
                                  order by served_at nulls first, due_at, notification_id)
                 + (select count(*) from under_way b
                     where (b.account_id, b.lane = 'webhook-unanswered') = (r.account_id, r.lane = 'webhook-unanswered'))
                 as nth
          from ready r
        window account as (partition by account_id)
      ), hosted as (
        select r.*, row_number() over (partition by host order by nth, account_served_at nulls first,
                                       account_id)
                 + (select count(*) from under_way b where b.host = r.host) as nth_of_host
          from ranked r
         where nth <= $2
      ), ordered as (
        select h.*, row_number() over (partition by lane order by nth, account_served_at nulls first,
                                       account_id) as nth_of_lane
          from hosted h
         where host is null or nth_of_host <= $9
      ), turn as (
        select o.*
          from ordered o
          join unnest($5::text[], $6::integer[]) as p (lane, free) on p.lane = o.lane
         where o.nth_of_lane <= p.free
      ), locked as (
        select c.id, t.notification_id, t.lane, t.host
          from turn t join contact c on c.id = t.contact_id
         where ${isPast('c.busy_until')}
           for no key update of c skip locked
      ), contact_taken as (
        update contact c
           set busy_until = ms_to_timestamp($1 + $4), served_at = ms_to_timestamp($1)
          from locked l
         where c.id = l.id
        returning c.*, l.notification_id, l.lane, l.host
      ), direct_taken as (
        insert into recipient_turn as t (account_id, kind, recipient, busy_until, served_at)
        select account_id, kind, recipient, ms_to_timestamp($1 + $4), ms_to_timestamp($1)
          from turn where contact_id is null
         order by account_id, kind, recipient
        on conflict (account_id, kind, recipient) do update
          set busy_until = excluded.busy_until, served_at = excluded.served_at
          where ${isPast('t.busy_until')}
        returning account_id, kind, recipient, gathers_until
      ), taken as (
        select notification_id, id as contact_id, uuid as contact_uuid, account_id, kind,
               lane, host, address as recipient, gathers_until, labels,
               kind = 'webhook' or confirmed_at is not null as is_confirmed,
               unsubscribed_at is not null as is_unsubscribed
          from contact_taken
        union all
        select t.notification_id, null, null, t.account_id, t.kind, t.lane, t.host, t.recipient,
               d.gathers_until, '{}',
               true, false
          from direct_taken d
          join turn t on t.contact_id is null and t.account_id = d.account_id and t.kind = d.kind
                     and t.recipient = d.recipient
      ), begun as (
        update notification n
           set attempts = n.attempts + 1, changed_at = ms_to_timestamp($1)
          from taken t
          join notification before on before.id = t.notification_id
         where n.id = t.notification_id and n.state = 'queued'
        returning n.*, ${isCutOff('before')} as is_repeated
      )
      select n.id, t.contact_id as "contactId", t.contact_uuid as "contactUuid",
             t.account_id as "accountId", t.kind, t.lane, t.host, n.type, t.recipient, n.title, n.body, n.engine, n.data,
             n.counted_on is not null as "isCounted", n.is_repeated as "isRepeated",
             a.language, a.time_zone as "timeZone", n.created_at as "createdTs", n.attempts,
             a.disabled_at is not null as "isDisabled", t.is_confirmed as "isConfirmed",
             t.is_unsubscribed as "isUnsubscribed", n.alarm_id as "alarmId", n.announcement,
             t.gathers_until is not null as "isGathering", d.uuid as "deviceUuid",
             d.name as "deviceName",
             n.device_id is null or t.labels = '{}' or coalesce(d.labels && t.labels, false)
               as "isSuiting"
        from taken t
        join account a on a.id = t.account_id
        left join begun n on n.id = t.notification_id
        left join device d on d.id = n.device_id`,
    values: [
      nowTs,
      perAccount,
      underWay.map(({ accountId }) => accountId),
      leaseMs,
      Object.keys(places),
      Object.values(places),
      underWay.map(({ lane }) => lane),
      underWay.map(({ host }) => host),
      perHost,
    ],
  });
  const deliveries = rows.filter((row): row is Delivery => row.id !== null);
  // Another process settled the message after the query chose it and before the row was locked.
  for (const row of rows) if (row.id === null) await freeRecipient(sql, row);
  return deliveries;
}

async function freeRecipient(sql: Sql, delivery: RecipientKey): Promise<void> {
  const { contactId, accountId, kind, recipient } = delivery;
  await (contactId === null
    ? sql.query(
        `update recipient_turn set busy_until = null
          where account_id = $1 and kind = $2 and recipient = $3`,
        [accountId, kind, recipient],
      )
    : sql.query('update contact set busy_until = null where id = $1', [contactId]));
}

/**
 * Checks, in the transaction that ends messages, whether their announcements have reached somebody or have failed
 * altogether. Call it with the alarms locked: if two messages end at once, the later one sees both. Repeats and
 * escalations neither make an announcement nor take one back.
 */
export async function endAnnouncements(
  tx: Sql,
  ended: readonly GivenUp[],
  nowTs: WallMs,
): Promise<void> {
  const made = ended.filter(
    (one): one is Announcement => one.alarmId !== null && one.announcement !== null,
  );
  if (made.length === 0) return;
  const { rows } = await tx.query<Announcement & { isTold: boolean }>(
    `select e.alarm_id as "alarmId", e.announcement, bool_or(n.state in ('sent', 'logged')) as "isTold"
       from (select distinct alarm_id, announcement
               from unnest($1::bigint[], $2::integer[]) as u (alarm_id, announcement)) as e
       join notification n on n.alarm_id = e.alarm_id and n.announcement = e.announcement
      where n.type = 'opened' and n.state in ('queued', 'sent', 'logged', 'failed', 'held-back')
        and n.unsent_day is null
      group by 1, 2
     having bool_or(n.state in ('sent', 'logged'))
         or (not bool_or(n.state = 'queued')
             and not exists (
               select from message_bundle b
                cross join json_to_recordset(b.body -> 'messages')
                   as m (state text, type text, announcement integer)
                where b.alarm_id = e.alarm_id and b.${isWaiting}
                  and m.state = 'queued' and m.type = 'opened' and m.announcement = e.announcement))`,
    [made.map(({ alarmId }) => alarmId), made.map(({ announcement }) => announcement)],
  );
  await noteNotified(
    tx,
    rows.filter(({ isTold }) => isTold),
    nowTs,
  );
  await takeBack(
    tx,
    rows.filter(({ isTold }) => !isTold),
    nowTs,
  );
}

/** A message, and the day on which it was counted (UTC, `2026-11-22`); null if it was not. */
type CountedMessage = Pick<RecipientKey, 'accountId' | 'kind' | 'recipient'> & {
  countedOn: string | null;
};

// Which counters a message has does not depend on their limits.
const unlimited: MessageQuotas = {
  messagesPerDay: Infinity,
  messagesPerRecipient: Infinity,
  webhooksPerDay: Infinity,
  smsPerDay: Infinity,
  smsPerNumber: Infinity,
  smsPerInstallation: Infinity,
  confirmationsPerNetwork: Infinity,
  confirmationsPerInstallation: Infinity,
};

/** Takes messages that will not be sent off their counters, if the day on which they were counted lasts. */
async function refund(tx: Sql, messages: readonly CountedMessage[]): Promise<void> {
  const counters = messages.flatMap(({ accountId, kind: channel, recipient, countedOn }) =>
    countedOn === null
      ? []
      : countersOf({ accountId, channel, recipient }, () => unlimited).map((counter) => ({
          ...counter,
          countedOn,
        })),
  );
  if (counters.length === 0) return;
  // Locked in the order of `lockCounts`, which rules out deadlocks.
  await tx.query(
    `with less as (
       select kind, account_id, key, day, count(*) as n
         from unnest($1::text[], $2::bigint[], $3::text[], $4::date[])
           as l (kind, account_id, key, day)
        group by 1, 2, 3, 4
     ), locked as (
       select c.kind, c.account_id, c.key, l.n
         from message_count c
         join less l on l.kind = c.kind and l.account_id = c.account_id and l.key = c.key
                    and l.day = c.day
        order by c.kind collate "C", c.account_id, c.key collate "C"
          for update of c
     )
     update message_count c
        set used = greatest(0, c.used - l.n)
       from locked l
      where c.kind = l.kind and c.account_id = l.account_id and c.key = l.key`,
    [
      counters.map(({ kind }) => kind),
      counters.map(({ accountId }) => accountId),
      counters.map(({ key }) => key),
      counters.map(({ countedOn }) => countedOn),
    ],
  );
}

/**
 * Locks the planned messages of these alarms by ascending number. Returns what they are counted by, and what messages
 * are counted by that say that the alarms are over. The caller has locked the alarms' devices.
 */
export async function holdMessages(tx: Sql, alarmIds: readonly number[]): Promise<Counted[]> {
  await unbundlePlanned(tx, { alarmIds });
  const { rows } = await tx.query<Counted>({
    name: 'outbox-hold-messages',
    text: `
      with planned as (
        select account_id, kind, recipient from notification
         where alarm_id = any($1::bigint[]) and state = 'planned'
         order by id for update)
      select account_id as "accountId", kind as channel, recipient from planned
       union
      select c.account_id, c.kind, c.address
        from notification n
        join contact c on c.id = n.contact_id
       where n.alarm_id = any($1::bigint[]) and c.when_over`,
    values: [alarmIds],
  });
  return rows;
}

/**
 * Drops planned messages of alarms that were acknowledged, snoozed or closed, and takes them off the limits. Queued
 * messages are sent, and say what has happened.
 */
export async function dropPlanned(tx: Sql, alarmIds: readonly number[]): Promise<void> {
  if (alarmIds.length === 0) return;
  await unbundlePlanned(tx, { alarmIds });
  const { rows } = await tx.query<CountedMessage>(
    `delete from notification
      where alarm_id = any ($1) and state = 'planned'
     returning account_id as "accountId", kind, recipient, counted_on::text as "countedOn"`,
    [alarmIds],
  );
  await refund(tx, rows);
}

/** Makes the messages about another alarm messages about this one, whose announcements come first. */
export async function takeMessages(
  tx: Sql,
  { alarmId, announcement }: { alarmId: number; announcement: number },
  otherId: number,
): Promise<void> {
  await unbundleAlarm(tx, otherId);
  await tx.query(
    `with theirs as (select id from notification where alarm_id = $2 order by id for update)
     update notification n
        set alarm_id = $1, announcement = n.announcement + $3
       from theirs t where n.id = t.id`,
    [alarmId, otherId, announcement],
  );
}

/** Postpones planned messages of devices until their mute ends. */
export async function putOffPlanned(
  tx: Sql,
  deviceIds: readonly number[],
  untilMs: number,
): Promise<void> {
  await unbundlePlanned(tx, { deviceIds });
  await tx.query(
    `with theirs as (
       select id from notification
        where device_id = any($1::bigint[]) and state = 'planned' order by id for update)
     update notification n
        set due_at = greatest(n.due_at, ms_to_timestamp($2))
       from theirs t where n.id = t.id`,
    [deviceIds, untilMs],
  );
}

/** Queues planned messages that are due. They count for the day on which they fell due. */
export async function queuePlanned(sql: Sql, nowTs: WallMs): Promise<void> {
  await sql.query(
    `with due as (
       select id from notification
        where state = 'planned' and due_at <= ms_to_timestamp($1)
        order by due_at limit 1000 for update skip locked
     ), queued as (
       update notification n
          set state = 'queued', created_at = n.due_at, changed_at = ms_to_timestamp($1)
         from due where n.id = due.id
       returning n.id
     )
     select pg_notify($2, '') from queued limit 1`,
    [nowTs, dueChannel],
  );
}

/** No attempt takes this long, ms: the process that began it has ended. */
const longestAttemptMs = 300_000;

/**
 * An attempt to deliver the message, or the one that includes it, was begun and may still succeed. One that has failed
 * is due later than that was written. `now`: ms.
 */
export const isUnderWay = (row: string, now: string): string => `
  exists (
    select from notification begun
     where begun.id = coalesce(${row}.grouped_in, ${row}.id) and ${isCutOff('begun')}
       and begun.changed_at between ms_to_timestamp(${now}::bigint - ${longestAttemptMs})
                                and ms_to_timestamp(${now}::bigint + ${longestAttemptMs}))`;

/** A message that has ended: perhaps its alarm has now reached somebody, or nobody. */
export type GivenUp = { alarmId: number | null; announcement: number | null };

type GiveUp = { beforeMs: number; nowTs: WallMs };

/** As SQL: a message that waited too long, or is to a contact that is gone. */
const isGivenUp = `
  n.state in ('queued', 'planned') and n.due_at is not null
  and ((n.state = 'queued' and n.created_at < ms_to_timestamp($1))
       or (n.contact_id is not null
           and not exists (select from contact c where c.id = n.contact_id)))
  and not ${isUnderWay('n', '$2')}`;

/**
 * Gives up messages that waited too long, and messages to contacts that are gone, an alarm at a time: an alarm all of
 * whose messages failed is announced again, in the same transaction. What fails for one alarm is thrown after the
 * others.
 */
export async function giveUpOld(db: Database, of: GiveUp, signal?: AbortSignal): Promise<void> {
  const errors: unknown[] = [];
  for (const alarmId of await listGivenUp(db, of)) {
    if (signal?.aborted) return;
    await db
      .transaction(async (tx) => {
        if (alarmId !== null) await lockAlarms(tx, [alarmId]);
        await giveUpAbout(tx, alarmId, of);
      })
      .catch((error: unknown) => void errors.push(error));
  }
  if (errors.length > 0) throw errors[0];
}

/** The alarms about which messages are to be given up; null stands for messages about none. */
async function listGivenUp(sql: Sql, { beforeMs, nowTs }: GiveUp): Promise<(number | null)[]> {
  const { rows } = await sql.query<{ alarmId: number | null }>(
    `select distinct alarm_id as "alarmId" from notification n where ${isGivenUp}`,
    [beforeMs, nowTs],
  );
  return rows.map(({ alarmId }) => alarmId);
}

/** About this alarm, which is locked; null: about none. */
async function giveUpAbout(
  tx: Sql,
  alarmId: number | null,
  { beforeMs, nowTs }: GiveUp,
): Promise<void> {
  const { rows } = await tx.query<GivenUp & CountedMessage>(
    `with given_up as (
       select id from notification n
        where ${alarmId === null ? '$3::bigint is null and n.alarm_id is null' : 'n.alarm_id = $3'} and ${isGivenUp}
        order by id for update)
     update notification n
        set state = 'failed', changed_at = ms_to_timestamp($2),
            reason = case when n.state = 'queued' and n.created_at < ms_to_timestamp($1)
                          then 'too-late' else 'contact-gone' end
       from given_up g
      where n.id = g.id
     returning alarm_id as "alarmId", announcement, account_id as "accountId", kind, recipient,
               counted_on::text as "countedOn"`,
    [beforeMs, nowTs, alarmId],
  );
  await refund(tx, rows);
  await endAnnouncements(tx, rows, nowTs);
}

export type DeliveryOutcome = {
  state: 'queued' | 'sent' | 'logged' | 'failed' | 'held-back';
  reason: Reason | null;
  error: string | null;
  via: string;
  nowTs: WallMs;
  /** When it is tried again, if it is. */
  dueMs: number;
  /** How long the recipient asked us to wait. */
  restMs: number;
  /** Whether the recipient itself failed; null if it was not reached at all. */
  hasFailed: boolean | null;
};

/** A recipient that fails this often in a row rests for this long. */
const restAfter = 5;
export const restAfterFailuresMs = 900_000;

/**
 * Prevents changes to the alarms of a message, and of those grouped with it, until the transaction ends. It locks their
 * devices: another alarm may have taken theirs in since the attempt began.
 */
export async function lockAlarmsOf(tx: Sql, { id }: Pick<Delivery, 'id'>): Promise<void> {
  await tx.query({
    name: 'outbox-lock-devices-of',
    text: `
      select from device
       where id in (select device_id from notification
                     where (id = $1 or grouped_in = $1) and alarm_id is not null)
       order by id for no key update`,
    values: [id],
  });
}

/**
 * Stores the outcome of an attempt, also for the messages grouped with it, and releases the recipient. What is tried
 * again is gathered anew, perhaps with a more severe message that came since. A message that failed for good no longer
 * counts for the limits of its day, and a summary counts once. Returns the announcements that it was about.
 */
export async function settleDelivery(
  tx: Sql,
  delivery: Delivery,
  outcome: DeliveryOutcome,
): Promise<GivenUp[]> {
  const { state, reason, error, via, nowTs, dueMs } = outcome;
  const { rows } = await tx.query<GivenUp & { countedOn: string | null }>(
    `update notification
        set state = $2, reason = $3, error = $4, via = $5, changed_at = ms_to_timestamp($6),
            due_at = ms_to_timestamp($7),
            grouped_in = case when $2 <> 'queued' then grouped_in end
      where (id = $1 or grouped_in = $1) and state = 'queued'
     returning counted_on::text as "countedOn", alarm_id as "alarmId", announcement`,
    [delivery.id, state, reason, error, via, nowTs, dueMs],
  );
  await releaseRecipient(tx, delivery, outcome, rows.length);
  const counted = rows.filter(({ countedOn }) => countedOn !== null);
  const given = state === 'failed' ? counted : isOver(state) ? counted.slice(1) : [];
  await refund(
    tx,
    given.map(({ countedOn }) => ({ ...delivery, countedOn })),
  );
  return rows;
}

const isOver = (state: DeliveryOutcome['state']) => state === 'sent' || state === 'logged';

/** `told`: how many messages the recipient has now received. */
async function releaseRecipient(
  tx: Sql,
  delivery: Delivery,
  outcome: DeliveryOutcome,
  told: number,
): Promise<void> {
  const { contactId, accountId, kind, recipient, type } = delivery;
  const { state, reason, nowTs, restMs, hasFailed } = outcome;
  const isCounted =
    isOver(state) && !channels[kind].isForPrograms && type !== 'confirm' && type !== 'test';
  // The newest few are enough, even if one message stood for forty.
  const recent = `(array_fill(ms_to_timestamp($2), array[$3::integer]) || recent)[1:${gatherAfter}]`;
  const changes = `
    busy_until = null,
    failures = case when $1::boolean then failures + 1
                    when $1::boolean is null then failures else 0 end,
    rests_until = case when $1::boolean and failures + 1 >= ${restAfter}
                       then ms_to_timestamp($2::bigint + greatest(${restAfterFailuresMs}, $4))
                       when $4 > 0 then ms_to_timestamp($2::bigint + $4) end,
    recent = ${recent},
    gathers_until = case when $3 = 0 then gathers_until else ${gathersUntil(recent, '$3', '$2')} end`;
  const values = [hasFailed, nowTs, isCounted ? Math.min(told, gatherAfter) : 0, restMs];
  if (contactId === null)
    await tx.query(
      `update recipient_turn set ${changes}
        where account_id = $5 and kind = $6 and recipient = $7`,
      [...values, accountId, kind, recipient],
    );
  else
    await tx.query(
      `update contact
          set ${changes}, last_at = ms_to_timestamp($2), last_state = $6, last_reason = $7
        where id = $5`,
      [...values, contactId, state, reason],
    );
}

/** Deletes rows of recipients that are not contacts and have received nothing for a day. */
export async function forgetRecipients(sql: Sql, beforeMs: number): Promise<void> {
  await sql.query(
    `delete from recipient_turn
      where served_at < ms_to_timestamp($1)
        and coalesce(rests_until, '-infinity') < ms_to_timestamp($1)
        and coalesce(busy_until, '-infinity') < ms_to_timestamp($1)`,
    [beforeMs],
  );
}
