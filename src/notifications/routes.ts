import { z } from 'zod';
import { ChannelName } from '../contract/actions.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { defineRoute, type Route } from '../http/route.ts';
import {
  cursorQuery,
  cursorTs,
  DeviceParams,
  limitQuery,
  linkNext,
  timestamp,
} from '../http/schema.ts';
import { channels } from './channels/channels.ts';
import { Reason } from './reasons.ts';
import type { WallMs } from '../lib/clock-readings.ts';

type NotificationRoutesDependencies = {
  db: Sql;
  /** Null if the account has no such device. */
  findDeviceId: (accountId: number, deviceAuthUuid: string) => Promise<number | null>;
};

const Cursor = z.object({ ts: cursorTs, id: z.int() });

/** `GET /v2/devices/{deviceAuthUuid}/notifications`: the messages of a device and their outcomes. */
export function notificationRoutes({ db, findDeviceId }: NotificationRoutesDependencies): Route[] {
  return [
    defineRoute({
      name: 'listNotifications',
      scope: 'alarms:read',
      method: 'get',
      path: '/v2/devices/{deviceAuthUuid}/notifications',
      summary: 'Get notifications',
      description: 'Push messages and SMS of a device, newest first: one entry for each recipient.',
      tag: 'Devices',
      auth: 'account',
      params: DeviceParams,
      query: z.object({ limit: limitQuery(100, 10), cursor: cursorQuery(Cursor) }),
      response: NotificationsResponse,
      responseHeaders: { Link: 'The next page, if there is one.' },
      errors: [404],
      handler: async ({ account, params, query, request }) => {
        const deviceId = await findDeviceId(account.accountId, params.deviceAuthUuid);
        if (deviceId === null) throw new DomainError('not-found', 'There is no such device.');
        const { limit, cursor: after } = query;
        const found = await listNotifications(db, deviceId, { limit: limit + 1, after });
        const notifications = found.slice(0, limit);
        const last = notifications.at(-1);
        if (last && found.length > limit) {
          linkNext(request, { ts: last.timestamp, id: last.notificationId });
        }
        return { notifications, timestamp: request.now() };
      },
    }),
  ];
}

/**
 * The outcome for one recipient. `logged`: written to a log, nobody was reached. `held-back`: one of the day's limits
 * was reached. `planned`: waits for the contact's `afterMs`.
 */
const NotificationState = z
  .enum(['planned', 'queued', 'sent', 'logged', 'failed', 'held-back'])
  .meta({ id: 'NotificationState' });
type NotificationState = z.infer<typeof NotificationState>;

/** The outcome for one recipient, as the device's owner sees it. */
export const NotificationOutcome = z
  .object({
    notificationId: z.int(),
    timestamp: timestamp.meta({ description: 'When the event requested it.' }),
    changedTs: timestamp.meta({ description: 'When its state last changed.' }),
    kind: ChannelName,
    recipient: z.string().meta({
      description: 'The end of the push token or phone number; for e-mail and webhooks the host.',
    }),
    state: NotificationState,
    attempts: z.int(),
    via: z.string().optional().meta({ description: 'The driver that was used.' }),
    error: z
      .string()
      .optional()
      .meta({ description: 'Why the last attempt failed or was not made.' }),
    reason: Reason.optional().meta({ description: 'The same as a code for programs.' }),
    count: z
      .int()
      .optional()
      .meta({
        description:
          'How many messages were not sent for this reason on this day; `title`, `body` and ' +
          '`cause` are those of the first.',
      }),
    type: z.enum(['notice', 'opened', 'repeated', 'escalated', 'closed']).optional().meta({
      description:
        'Which change of its alarm the message reports. Absent for a `notice`, which has no alarm.',
    }),
    alarmId: z.int().optional(),
    grouped: z.literal(true).optional().meta({
      description:
        'This message was sent together with others; `state` is that of the combined message.',
    }),
    title: z.string(),
    body: z.string(),
    cause: z
      .object({
        engine: z
          .object({
            pId: z.string(),
            puId: z.int(),
            stId: z.int(),
            evId: z.int(),
            ts: timestamp,
          })
          .meta({ id: 'NotificationEngineCause' }),
      })
      .meta({ id: 'NotificationCause' }),
  })
  .meta({ id: 'Notification' });
export type NotificationOutcome = z.infer<typeof NotificationOutcome>;

const NotificationsResponse = z.object({
  notifications: z.array(NotificationOutcome),
  timestamp,
});
type NotificationsResponse = z.infer<typeof NotificationsResponse>;

/** Deletes outcomes from before `beforeMs`; queued messages stay. */
export async function forgetOutcomes(sql: Sql, beforeMs: number): Promise<void> {
  await sql.query(
    `delete from notification where created_at < ms_to_timestamp($1) and state <> 'queued'`,
    [beforeMs],
  );
}

/** Deletes the counters of days before yesterday, except those that are locked right now. */
export async function forgetCounts(sql: Sql, nowTs: WallMs): Promise<void> {
  await sql.query(
    `delete from message_count
      where ctid = any(array(
        select ctid from message_count
         where day < (ms_to_timestamp($1) at time zone 'UTC')::date - 1
         for update skip locked))`,
    [nowTs],
  );
}

/** The last outcome of a page: its time and number. */
type OutcomeCursor = { ts: number; id: number };

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

/** Outcomes of a device's messages, newest first, starting after `after`. */
async function listNotifications(
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
    recipient: channels[row.kind].mask(recipient),
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

/** The outcome of a message about an alarm. */
export const AlarmDelivery = z
  .object({
    kind: ChannelName,
    recipient: z
      .string()
      .meta({ description: 'As in the notifications of a device: never the whole address.' }),
    type: z.string().meta({ description: 'opened, repeated, escalated or closed.' }),
    state: z.enum(NotificationState.options),
    changedTs: timestamp,
    dueTs: timestamp.optional().meta({ description: 'When a planned message (`afterMs`) is due.' }),
    reason: z.string().optional(),
  })
  .meta({ id: 'Delivery' });
export type AlarmDelivery = z.infer<typeof AlarmDelivery>;

/** At most this many for one alarm, the newest. */
const mostPerAlarm = 50;

/** Messages about these alarms, newest first, by alarm. Recipients are masked. */
export async function listDeliveries(
  sql: Sql,
  alarmIds: readonly number[],
): Promise<Map<number, AlarmDelivery[]>> {
  type Row = Omit<AlarmDelivery, 'dueTs' | 'reason'> & {
    alarmId: number;
    dueTs: number | null;
    reason: string | null;
  };
  const { rows } = await sql.query<Row>({
    name: 'notifications-of-alarms',
    text: `
      select wanted.id as "alarmId", n.kind, n.recipient, n.type, n.state, n.reason,
             n.changed_at as "changedTs", case when n.state = 'planned' then n.due_at end as "dueTs"
        from unnest($1::bigint[]) as wanted (id)
       cross join lateral (
         select * from notification
          where alarm_id = wanted.id
          order by id desc
          limit ${mostPerAlarm}) as n`,
    values: [alarmIds],
  });
  const found = new Map<number, AlarmDelivery[]>();
  for (const { alarmId, kind, recipient, type, state, changedTs, dueTs, reason } of rows) {
    const delivery: AlarmDelivery = {
      kind,
      recipient: channels[kind].mask(recipient),
      type,
      state,
      changedTs,
      ...(dueTs === null ? {} : { dueTs }),
      ...(reason === null ? {} : { reason }),
    };
    found.set(alarmId, [...(found.get(alarmId) ?? []), delivery]);
  }
  return found;
}
