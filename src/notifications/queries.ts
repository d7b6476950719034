import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import type { Reason } from './reasons.ts';
import type { NotificationOutcome, NotificationState } from './schema.ts';

/**
 * Takes a push token that the push service calls dead out of an account, wherever it is. Two transactions: who holds
 * the account's row deletes its tokens on another connection, and neither may wait for the other.
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

/** Whether a push token is still one of an account: of its `apn`, or of a session of its. */
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
  type: NonNullable<NotificationOutcome['type']>;
  alarmId: number | null;
  isGrouped: boolean;
};

/** Outcomes of a device's notifications, newest first, beginning after `after`. */
export async function listNotifications(
  sql: Sql,
  deviceId: number,
  { limit, after }: { limit: number; after?: OutcomeCursor | undefined },
): Promise<NotificationOutcome[]> {
  const { rows } = await sql.query<OutcomeRow>(
    `select id, kind, recipient, title, body, engine, state, via, attempts, error, reason,
            count, created_at as "createdTs", changed_at as "changedTs", type, alarm_id as "alarmId",
            grouped_in is not null as "isGrouped"
       from notification
      where device_id = $1
        and ($3::bigint is null or (created_at, id) < (ms_to_timestamp($3), $4::bigint))
      order by created_at desc, id desc
      limit $2`,
    [deviceId, limit, after?.ts ?? null, after?.id ?? null],
  );
  return rows.map(toOutcome);
}

function toOutcome({
  id,
  createdTs,
  recipient,
  engine,
  via,
  error,
  reason,
  count,
  type,
  alarmId,
  isGrouped,
  ...row
}: OutcomeRow): NotificationOutcome {
  return {
    ...row,
    notificationId: id,
    timestamp: createdTs,
    recipient: mask(row.kind, recipient),
    cause: { engine },
    ...(via === null ? {} : { via }),
    ...(error === null ? {} : { error }),
    ...(reason === null ? {} : { reason }),
    ...(count === 1 ? {} : { count }),
    ...(type === 'notice' ? {} : { type }),
    ...(alarmId === null ? {} : { alarmId }),
    ...(isGrouped ? { grouped: true as const } : {}),
  };
}

/** Enough to recognise a recipient, too little to write to it. */
export function mask(kind: NotificationOutcome['kind'], recipient: string): string {
  if (kind === 'webhook') return URL.parse(recipient)?.host ?? '…';
  if (kind === 'email')
    return `${recipient.slice(0, 1)}…${recipient.slice(recipient.indexOf('@'))}`;
  return `…${recipient.slice(-Math.min(4, Math.floor(recipient.length / 2)))}`;
}
