import type { CauseSense, CauseDetail, EngineCause } from '../contract/event.ts';
import type { Sql } from '../db/sql.ts';
import type { Reason } from './reasons.ts';

/** The channel on which a process that has committed messages to contacts says so to those that deliver. */
export const dueChannel = 'sensorium_due';

export type MessageType =
  'notice' | 'confirm' | 'test' | 'opened' | 'repeated' | 'escalated' | 'closed';

/** What a webhook is told of an event beside the text. */
export type NoticeData = {
  engine: EngineCause;
  senses: CauseSense[];
  why?: CauseDetail[];
};

/** A message to a contact whose turn it is; the contact is busy until it is settled. */
export type ContactDelivery = {
  id: number;
  contactId: number;
  contactUuid: string;
  accountId: number;
  kind: 'email' | 'webhook';
  type: MessageType;
  address: string;
  title: string;
  body: string;
  data: NoticeData | null;
  deviceUuid: string | null;
  deviceName: string | null;
  language: string | null;
  createdTs: number;
  /** How often it was tried, this time included. */
  attempts: number;
  isDisabled: boolean;
  isConfirmed: boolean;
  isUnsubscribed: boolean;
  /** Whether the device has one of the contact's labels by now, or needs none. */
  isSuiting: boolean;
};

export type DueQuery = {
  nowMs: number;
  /** So many at most. */
  limit: number;
  perAccount: number;
  /** How many of them may be webhooks: their accounts choose how long an answer takes. */
  hookLimit: number;
  /** What is under way here: for which accounts. */
  busyAccounts: number[];
  /** A contact that nobody settled is free again after so long: its process ended. */
  leaseMs: number;
};

/**
 * Takes the next messages: of each contact that is neither busy nor at rest the oldest that is due; of an
 * account its contact that waited longest since it was served; of all accounts likewise. A contact's row is
 * its lock, also between processes.
 */
export async function takeDueDeliveries(
  sql: Sql,
  { nowMs, limit, perAccount, hookLimit, busyAccounts, leaseMs }: DueQuery,
): Promise<ContactDelivery[]> {
  const { rows } = await sql.query<ContactDelivery>({
    name: 'outbox-take-turns',
    text: `
      with recursive waiting as (
        (select contact_id from notification
          where state = 'queued' and contact_id is not null
          order by contact_id limit 1)
        union all
        select (select n.contact_id from notification n
                 where n.state = 'queued' and n.contact_id > w.contact_id
                 order by n.contact_id limit 1)
          from waiting w where w.contact_id is not null
      ), ready as (
        select c.id, c.account_id, c.kind, first.id as notification_id,
               max(c.served_at) over account as account_served_at,
               row_number() over (partition by c.account_id
                                  order by c.served_at nulls first, first.due_at, c.id)
                 + (select count(*) from unnest($4::bigint[]) as b (id) where b.id = c.account_id)
                 as nth
          from waiting w
          join contact c on c.id = w.contact_id
         cross join lateral (
           select id, due_at from notification n
            where n.contact_id = c.id and n.state = 'queued' and n.due_at <= ms_to_timestamp($1)
            order by n.due_at, n.id limit 1) as first
         where coalesce(c.busy_until, '-infinity') <= ms_to_timestamp($1)
           and coalesce(c.rests_until, '-infinity') <= ms_to_timestamp($1)
        window account as (partition by c.account_id)
      ), ordered as (
        select r.*, row_number() over (partition by kind order by r.nth,
                                       r.account_served_at nulls first, r.account_id) as nth_of_kind
          from ready r
         where r.nth <= $3
      ), turn as (
        select o.*
          from ordered o
         where o.kind = 'email' or o.nth_of_kind <= $6
         order by o.nth, o.account_served_at nulls first, o.account_id
         limit $2
      ), locked as (
        select c.id, t.notification_id
          from turn t join contact c on c.id = t.id
         where coalesce(c.busy_until, '-infinity') <= ms_to_timestamp($1)
           for no key update of c skip locked
      ), taken as (
        update contact c
           set busy_until = ms_to_timestamp($1 + $5), served_at = ms_to_timestamp($1)
          from locked l
         where c.id = l.id
        returning c.*, l.notification_id
      )
      update notification n
         set attempts = n.attempts + 1
        from taken c
        join account a on a.id = c.account_id
       where n.id = c.notification_id and n.state = 'queued'
      returning n.id, c.id as "contactId", c.uuid as "contactUuid", n.account_id as "accountId", n.kind,
                n.type, c.address, n.title, n.body, n.data, a.language, n.created_at as "createdTs",
                n.attempts, a.disabled_at is not null as "isDisabled",
                c.confirmed_at is not null as "isConfirmed",
                c.unsubscribed_at is not null as "isUnsubscribed",
                (select uuid from device d where d.id = n.device_id) as "deviceUuid",
                (select d.name from device d where d.id = n.device_id) as "deviceName",
                n.device_id is null or c.labels = '{}'
                  or exists (select from device d where d.id = n.device_id and d.labels && c.labels)
                  as "isSuiting"`,
    values: [nowMs, limit, perAccount, busyAccounts, leaseMs, hookLimit],
  });
  return rows;
}

export type ContactOutcome = {
  state: 'queued' | 'sent' | 'failed';
  reason: Reason | null;
  error: string | null;
  via: string;
  nowMs: number;
  /** When it is tried again, where it is. */
  dueMs: number;
  /** Whether the recipient itself failed; null: it was not asked. */
  hasFailed: boolean | null;
  /** A recipient that failed so often running rests for so long. */
  restAfter: number;
  restMs: number;
};

/** Writes down how an attempt ended, and gives the turn back. */
export async function settleDelivery(
  sql: Sql,
  { id, contactId }: Pick<ContactDelivery, 'id' | 'contactId'>,
  outcome: ContactOutcome,
): Promise<void> {
  const { state, reason, error, via, nowMs, dueMs, hasFailed, restAfter, restMs } = outcome;
  await sql.query(
    `with settled as (
       update notification
          set state = $3, reason = $4, error = $5, via = $6, changed_at = ms_to_timestamp($7),
              due_at = ms_to_timestamp($8)
        where id = $1 and state = 'queued'
     )
     update contact
        set busy_until = null,
            last_at = ms_to_timestamp($7), last_state = $3, last_reason = $4,
            failures = case when $9::boolean then failures + 1
                            when $9::boolean is null then failures else 0 end,
            rests_until = case when $9::boolean and failures + 1 >= $10
                               then ms_to_timestamp($7 + $11) end
      where id = $2`,
    [id, contactId, state, reason, error, via, nowMs, dueMs, hasFailed, restAfter, restMs],
  );
}

/** Gives up what waited too long for its turn, and what is for a contact that is gone. */
export async function giveUpOld(sql: Sql, beforeMs: number, nowMs: number): Promise<void> {
  await sql.query(
    `update notification n
        set state = 'failed', changed_at = ms_to_timestamp($2),
            reason = case when n.created_at < ms_to_timestamp($1) then 'too-late'
                          else 'contact-gone' end
      where n.state = 'queued' and n.contact_id is not null
        and (n.created_at < ms_to_timestamp($1)
             or not exists (select from contact c where c.id = n.contact_id))`,
    [beforeMs, nowMs],
  );
}
