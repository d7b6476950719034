import type { Sql } from '../db/sql.ts';
import { reasons, type Reason } from './reasons.ts';
import type { NotificationOutcome, NotificationState } from './schema.ts';

/** A notification on its way to a driver. */
export type DueNotification = {
  id: number;
  accountId: number;
  deviceUuid: string;
  kind: 'push' | 'sms';
  recipient: string;
  title: string;
  body: string;
  engine: NotificationOutcome['cause']['engine'];
  createdTs: number;
  /** How often it was tried, this time included. */
  attempts: number;
  /** The operator has shut the account out. */
  isDisabled: boolean;
};

/** Counts an attempt. Null when the notification is settled, or went away with its device or account. */
export async function claimNotification(sql: Sql, id: number): Promise<DueNotification | null> {
  const { rows } = await sql.query<DueNotification>(
    `update notification n
        set attempts = n.attempts + 1
       from device d
       join account a on a.id = d.account_id
      where n.id = $1 and n.state = 'queued' and d.id = n.device_id
     returning n.id, n.account_id as "accountId", d.uuid as "deviceUuid",
               n.kind, n.recipient, n.title, n.body, n.engine, n.created_at as "createdTs", n.attempts,
               a.disabled_at is not null as "isDisabled"`,
    [id],
  );
  return rows[0] ?? null;
}

export type DeliveryOutcome = {
  state: NotificationState;
  via: string;
  reason: Reason | null;
  nowMs: number;
};

/** Writes down how an attempt ended. */
export async function settleNotification(
  sql: Sql,
  id: number,
  { state, via, reason, nowMs }: DeliveryOutcome,
): Promise<void> {
  await sql.query(
    `update notification
        set state = $2, via = $3, reason = $4, error = $5, changed_at = ms_to_timestamp($6)
      where id = $1`,
    [id, state, via, reason, reason && reasons[reason], nowMs],
  );
}

/** Takes a push token that the push service calls dead out of an account's `apn`. */
export async function removePushToken(sql: Sql, accountId: number, token: string): Promise<void> {
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

/** Forgets outcomes from before `beforeMs`; what is still queued stays. */
export async function forgetOutcomes(sql: Sql, beforeMs: number): Promise<void> {
  await sql.query(
    `delete from notification where created_at < ms_to_timestamp($1) and state <> 'queued'`,
    [beforeMs],
  );
}

/** Forgets what was counted on days before yesterday's, but for what somebody counts on right now. */
export async function forgetCounts(sql: Sql, nowMs: number): Promise<void> {
  await sql.query(
    `delete from message_count
      where ctid = any(array(
        select ctid from message_count
         where day < (ms_to_timestamp($1) at time zone 'UTC')::date - 1
         for update skip locked))`,
    [nowMs],
  );
}

/** Where a page of outcomes ends: time and number of its last one. */
export type OutcomeCursor = { ts: number; id: number };

type OutcomeRow = {
  id: number;
  kind: NotificationOutcome['kind'];
  recipient: string;
  title: string;
  body: string;
  engine: NotificationOutcome['cause']['engine'];
  state: NotificationState;
  via: string | null;
  attempts: number;
  error: string | null;
  reason: Reason | null;
  count: number;
  createdTs: number;
  changedTs: number;
};

/** Outcomes of a device's notifications, newest first, beginning after `after`. */
export async function listNotifications(
  sql: Sql,
  deviceId: number,
  { limit, after }: { limit: number; after?: OutcomeCursor | undefined },
): Promise<NotificationOutcome[]> {
  const { rows } = await sql.query<OutcomeRow>(
    `select id, kind, recipient, title, body, engine, state, via, attempts, error, reason,
            count, created_at as "createdTs", changed_at as "changedTs"
       from notification
      where device_id = $1
        and ($3::bigint is null or (created_at, id) < (ms_to_timestamp($3), $4::bigint))
      order by created_at desc, id desc
      limit $2`,
    [deviceId, limit, after?.ts ?? null, after?.id ?? null],
  );
  return rows.map(({ id, createdTs, recipient, engine, via, error, reason, count, ...row }) => ({
    ...row,
    notificationId: id,
    timestamp: createdTs,
    recipient: mask(row.kind, recipient),
    cause: { engine },
    ...(via === null ? {} : { via }),
    ...(error === null ? {} : { error }),
    ...(reason === null ? {} : { reason }),
    ...(count === 1 ? {} : { count }),
  }));
}

/** Enough to recognise a recipient, too little to write to it. */
export function mask(kind: NotificationOutcome['kind'], recipient: string): string {
  if (kind === 'webhook') return URL.parse(recipient)?.host ?? '…';
  if (kind === 'email')
    return `${recipient.slice(0, 1)}…${recipient.slice(recipient.indexOf('@'))}`;
  return `…${recipient.slice(-Math.min(4, Math.floor(recipient.length / 2)))}`;
}
