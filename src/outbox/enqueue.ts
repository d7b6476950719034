import type { Sql } from '../db/sql.ts';
import type { NewNotification } from './schema.ts';

export type EnqueueOptions = {
  /** How many notifications an account may send on one day (UTC); what is beyond is held back. */
  dailyQuota: number;
  nowMs: number;
};

/** The task that delivers one notification. */
export const deliverTask = 'deliver-notification';

/**
 * Far more than a delivery is tried: what counts is the notification's own number of attempts. A job
 * must outlast processes that end while they hold it.
 */
export const maxRuns = 100;

/**
 * Writes push and SMS, and the jobs that deliver them, within the caller's transaction: what rolls
 * back never rings, what commits is never lost. One row a recipient, in one statement.
 */
export async function enqueueNotifications(
  tx: Sql,
  notifications: readonly NewNotification[],
  { dailyQuota, nowMs }: EnqueueOptions,
): Promise<void> {
  if (notifications.length === 0) return;
  await tx.query({
    name: 'enqueue-notifications',
    text: `
      with asked as (
        select *
          from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
          with ordinality as a (account_id, device_id, kind, phone_number, title, body, engine, place)
      ), addressed as (
        select a.*, a.phone_number as recipient, 0 as nth from asked a where kind = 'sms'
        union all
        select a.*, t.token, t.nth
          from asked a
          join account on account.id = a.account_id
         cross join lateral (
           select entry ->> 'token' as token, min(nth) as nth
             from jsonb_array_elements(account.apn) with ordinality as e (entry, nth)
            group by 1
         ) t
         where kind = 'push'
      ), counted as (
        select *,
               row_number() over (partition by account_id order by place, nth) as position,
               count(*) over (partition by account_id) as total
          from addressed
      ), quota as (
        insert into notification_quota as q (account_id, day, used)
        select account_id, (ms_to_timestamp($8) at time zone 'UTC')::date, count(*)
          from addressed group by account_id order by account_id
        on conflict (account_id) do update
          set used = case when q.day < excluded.day then 0 else q.used end + excluded.used,
              day = greatest(q.day, excluded.day)
        returning account_id, used
      ), written as (
        insert into notification
          (account_id, device_id, kind, recipient, title, body, engine, state, error, created_at, changed_at)
        select account_id, device_id, kind, recipient, title, body, engine::json,
               case when fits then 'queued' else 'held-back' end,
               case when fits then null else 'The daily quota of the account is used up.' end,
               ms_to_timestamp($8), ms_to_timestamp($8)
          from (select c.*, q.used - c.total + c.position <= $9 as fits
                  from counted c join quota q using (account_id)) as c
         order by place, nth
        returning id, state
      ), due as (
        select array_agg(
                 row($10::text, json_build_object('notificationId', id), null, null,
                     $11::smallint, null, null, null)::graphile_worker.job_spec
                 order by id) as specs
          from written where state = 'queued' having count(*) > 0
      )
      select count(*) from due cross join lateral graphile_worker.add_jobs(due.specs)`,
    values: [
      notifications.map((n) => n.accountId),
      notifications.map((n) => n.deviceId),
      notifications.map((n) => n.kind),
      notifications.map((n) => (n.kind === 'sms' ? n.phoneNumber : null)),
      notifications.map(titleOf),
      notifications.map(bodyOf),
      notifications.map((n) => JSON.stringify(n.event.cause.engine)),
      nowMs,
      dailyQuota,
      deliverTask,
      maxRuns,
    ],
  });
}

function titleOf(notification: NewNotification): string {
  const { evId } = notification.event.cause.engine;
  return (notification.kind === 'push' && notification.name) || `Event ${evId}`;
}

/** An SMS is its text; a push tells what was measured. */
function bodyOf(notification: NewNotification): string {
  if (notification.kind === 'sms') return notification.text;
  const { senses } = notification.event.cause;
  return senses
    .map(({ sId, val, lat, long }) =>
      lat === undefined ? `${sId}: ${val}` : `${sId}: ${lat}, ${long}`,
    )
    .join('; ');
}
