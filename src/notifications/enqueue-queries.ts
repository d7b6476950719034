import { addJobs, jobSpec } from '../db/jobs.ts';
import type { Sql } from '../db/sql.ts';
import { counterName } from './allot.ts';
import type { Allotted, Counter } from './allot.ts';
import { bodyOf, titleOf } from './compose.ts';
import { isLimit, reasons } from './reasons.ts';
import type { Unsent } from './sort-out.ts';

/** The task that delivers one notification. */
export const deliverTask = 'deliver-notification';

/**
 * Far more than a delivery is tried: what counts is the notification's own number of attempts. A job
 * must outlast processes that end while they hold it.
 */
export const maxRuns = 100;

/** Of what is not sent, and of any title, only so much is kept. */
const maxText = 1_000;

const day = (parameter: string) => `(ms_to_timestamp(${parameter}) at time zone 'UTC')::date`;

/** An account that has something to say, and what it has said today; others may be counting meanwhile. */
export type Sender = {
  accountId: number;
  maySendSms: boolean;
  /** Each once, in the account's order. */
  tokens: string[];
  messagesUsed: number;
  smsUsed: number;
};

export async function findSenders(
  tx: Sql,
  accountIds: number[],
  nowMs: number,
): Promise<Map<number, Sender>> {
  const { rows } = await tx.query<Sender>({
    name: 'outbox-find-senders',
    text: `
      select account.id as "accountId", may_send_sms as "maySendSms",
             (select coalesce(json_agg(token order by nth), '[]')
                from (select entry ->> 'token' as token, min(nth) as nth
                        from jsonb_array_elements(apn) with ordinality as e (entry, nth)
                       where entry ->> 'token' is not null
                       group by 1) as t) as tokens,
             coalesce(messages.used, 0) as "messagesUsed", coalesce(sms.used, 0) as "smsUsed"
        from account
        left join message_count as messages
          on messages.kind = 'account' and messages.account_id = account.id
         and messages.key = '' and messages.day >= ${day('$2')}
        left join message_count as sms
          on sms.kind = 'sms' and sms.account_id = account.id
         and sms.key = '' and sms.day >= ${day('$2')}
       where account.id = any ($1)`,
    values: [accountIds, nowMs],
  });
  return new Map(rows.map((row) => [row.accountId, row]));
}

/**
 * Keeps others from counting until the transaction ends; gives what is used today, by `nameOf`. Always in
 * the same order, so that nobody waits in a circle.
 */
export async function lockCounts(
  tx: Sql,
  counters: readonly Counter[],
  nowMs: number,
): Promise<Map<string, number>> {
  if (counters.length === 0) return new Map();
  const { rows } = await tx.query<Counter & { used: number }>({
    name: 'outbox-lock-counts',
    text: `
      insert into message_count as c (kind, account_id, key, day, used)
      select kind, account_id, key, ${day('$4')}, 0
        from unnest($1::text[], $2::bigint[], $3::text[]) as asked (kind, account_id, key)
       order by kind collate "C", account_id, key collate "C"
      on conflict (kind, account_id, key) do update
        set used = case when c.day < excluded.day then 0 else c.used end,
            day = greatest(c.day, excluded.day)
      returning kind, account_id as "accountId", key, used`,
    values: [
      counters.map(({ kind }) => kind),
      counters.map(({ accountId }) => accountId),
      counters.map(({ key }) => key),
      nowMs,
    ],
  });
  return new Map(rows.map((row) => [counterName(row), row.used]));
}

export type Decided = {
  queued: readonly Allotted[];
  unsent: readonly Unsent[];
  /** How much more is counted than before; these are locked. */
  counted: readonly (Counter & { more: number })[];
  nowMs: number;
};

/** Writes what was decided, and a job for each message that is to be sent. */
export async function writeNotifications(
  tx: Sql,
  { queued, unsent, counted, nowMs }: Decided,
): Promise<void> {
  if (queued.length === 0 && unsent.length === 0) return;
  const all = [...queued, ...unsent];
  await tx.query({
    name: 'outbox-write-notifications',
    text: `
      with asked as (
        select * from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[],
                             $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::integer[])
          with ordinality
          as a (account_id, device_id, kind, recipient, title, body, engine, state, reason, error, count,
                place)
      ), counted as (
        update message_count c
           set used = c.used + m.more
          from unnest($12::text[], $13::bigint[], $14::text[], $15::bigint[])
            as m (kind, account_id, key, more)
         where c.kind = m.kind and c.account_id = m.account_id and c.key = m.key
      ), queued as (
        insert into notification
          (account_id, device_id, kind, recipient, title, body, engine, state, created_at, changed_at)
        select account_id, device_id, kind, recipient, title, body, engine::json, state,
               ms_to_timestamp($16), ms_to_timestamp($16)
          from asked where state = 'queued' order by place
        returning id
      ), unsent as (
        insert into notification as n
          (account_id, device_id, kind, recipient, title, body, engine, state, reason, error, count,
           unsent_day, created_at, changed_at)
        select account_id, device_id, kind, recipient, title, body, engine::json, state, reason, error,
               count, ${day('$16')}, ms_to_timestamp($16), ms_to_timestamp($16)
          from asked where state <> 'queued' order by device_id, kind, reason
        on conflict (device_id, kind, reason, unsent_day) where unsent_day is not null do update
          set count = least(n.count::bigint + excluded.count, 2147483647),
              changed_at = excluded.changed_at
      ), due as (
        select array_agg(
                 ${jobSpec({ task: '$17', payload: `json_build_object('notificationId', id)`, maxRuns: '$18' })}
                 order by id) as specs
          from queued having count(*) > 0
      )
      select count(*) from due cross join lateral ${addJobs}(due.specs)`,
    values: [
      all.map(({ notification }) => notification.accountId),
      all.map(({ notification }) => notification.deviceId),
      all.map(({ notification }) => notification.kind),
      all.map(({ recipient }) => recipient),
      all.map(({ notification }) => cut(titleOf(notification))),
      [
        ...queued.map(({ notification, isLast }) => bodyOf(notification, isLast)),
        ...unsent.map(({ notification }) => cut(bodyOf(notification, false))),
      ],
      all.map(({ notification }) => JSON.stringify(notification.event.cause.engine)),
      [
        ...queued.map(() => 'queued'),
        ...unsent.map(({ reason }) => (isLimit(reason) ? 'held-back' : 'failed')),
      ],
      [...queued.map(() => null), ...unsent.map(({ reason }) => reason)],
      [...queued.map(() => null), ...unsent.map(({ reason }) => reasons[reason])],
      [...queued.map(() => 1), ...unsent.map(({ count }) => count)],
      counted.map(({ kind }) => kind),
      counted.map(({ accountId }) => accountId),
      counted.map(({ key }) => key),
      counted.map(({ more }) => more),
      nowMs,
      deliverTask,
      maxRuns,
    ],
  });
}

const cut = (text: string) => text.slice(0, maxText).toWellFormed();
