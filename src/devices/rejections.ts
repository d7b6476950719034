import type { Rejection, RejectionDetails } from '../contract/uplink.ts';
import type { Sql } from '../db/sql.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { DeviceParams } from '../http/schema.ts';
import { findDeviceId } from './queries.ts';
import { noSuchDevice, RejectionList, RejectionsQuery } from './schema.ts';

/** A rejected item. `messageId` and `item` make a retry idempotent. */
type NewRejection = Rejection & {
  deviceId: number;
  messageId: string;
  item: number;
  /** When it arrived, ms. */
  ts: number;
  topic: string;
  /** Empty except for the first of its message. */
  payload: string;
};

/** Rejections kept of each device, and how many more may accumulate before the oldest are removed. */
const keptRejections = 1_000;
const slackRejections = 250;
/** The same for their bytes, as a share of the limit. */
const slackPart = 0.25;

type RejectionLimits = {
  /** Kept of a device besides the limit of 1,000, in bytes of text. */
  maxBytes: number;
};

/**
 * Stores rejections, and removes a device's oldest ones once it has a quarter more than the limit. Rejections that only
 * count, because their minute already has enough individual ones, are added up in one row for the device and minute.
 */
export async function keepRejections(
  tx: Sql,
  rejections: readonly NewRejection[],
  { maxBytes }: RejectionLimits,
): Promise<void> {
  if (rejections.length === 0) return;
  const full = await insertRejections(tx, rejections, maxBytes * (1 + slackPart));
  if (full.length > 0) await trimRejections(tx, full, maxBytes);
}

/**
 * Returns the devices that have too many, or whose rejections were never counted. The count is stored with them in the
 * same transaction, so that nobody has to read a device's rejections to know it.
 */
async function insertRejections(
  tx: Sql,
  rejections: readonly NewRejection[],
  fullBytes: number,
): Promise<number[]> {
  const { rows } = await tx.query<{ id: number }>({
    name: 'devices-keep-rejections',
    text: `
      with inserted as (
        insert into rejection
          (device_id, message_id, item, rejected_at, topic, reason, message, path, payload, more,
           details)
        select device_id, message_id, item, ms_to_timestamp(ts), topic, reason, message, path,
               payload, more, details::json
          from unnest($1::bigint[], $2::uuid[], $3::integer[], $4::bigint[], $5::text[],
                      $6::text[], $7::text[], $8::text[], $9::text[], $10::integer[],
                      $13::text[])
            as r (device_id, message_id, item, ts, topic, reason, message, path, payload, more,
                  details)
        on conflict (device_id, message_id, item, coalesce(path, ''))
          do update set more = rejection.more + excluded.more
          where rejection.reason = 'more-of-minute'
        -- Nothing has ended or locked a row that was not there before.
        returning device_id, ${bytesOf} as bytes, rejection.xmax = 0 as is_new
      ), counted as (
        insert into rejection_count as c (device_id, count, bytes)
        select device_id, count(*), sum(bytes)
          from inserted where is_new group by device_id order by device_id
        on conflict (device_id) do update
          set count = c.count + excluded.count, bytes = c.bytes + excluded.bytes
        returning device_id, count, bytes
      )
      select device_id as id
        from counted
        left join rejection_count as before using (device_id)
       where before.device_id is null or counted.count > $11 or counted.bytes > $12
       order by 1`,
    values: [
      rejections.map((r) => r.deviceId),
      rejections.map((r) => r.messageId),
      rejections.map((r) => r.item),
      rejections.map((r) => r.ts),
      rejections.map((r) => r.topic),
      rejections.map((r) => r.reason),
      rejections.map((r) => r.message),
      rejections.map((r) => r.path ?? null),
      rejections.map((r) => r.payload),
      rejections.map((r) => r.more ?? null),
      keptRejections + slackRejections,
      Math.round(fullBytes),
      rejections.map((r) => (r.details ? JSON.stringify(r.details) : null)),
    ],
  });
  return rows.map(({ id }) => id);
}

const bytesOf = `(octet_length(rejection.topic) + octet_length(rejection.reason) + octet_length(rejection.message)
  + coalesce(octet_length(rejection.path), 0) + octet_length(rejection.payload)
  + coalesce(octet_length(rejection.details::text), 0))`;

/**
 * Removes all but the newest of each of these devices, and counts the rest. If that cuts a message in two, the row with
 * the payload stays.
 */
async function trimRejections(tx: Sql, deviceIds: number[], maxBytes: number): Promise<void> {
  await tx.query({
    name: 'devices-trim-rejections',
    // By their ctids, in an array: a join might read the whole table.
    text: `
      with placed as materialized (
        select full_device.id, r.*
          from unnest($1::bigint[]) as full_device (id)
         cross join lateral (
           select ctid as place, ${bytesOf} as bytes,
                  row_number() over newest as nth, sum(${bytesOf}) over newest as bytes_to_here
             from rejection
            where device_id = full_device.id
           window newest as (
             order by rejected_at desc, message_id, payload = '', item, path
             rows unbounded preceding)
         ) as r
      ), removed as (
        delete from rejection
         where ctid = any(array(
           select place from placed where nth > $2 or (bytes_to_here > $3 and nth > 1)))
      )
      update rejection_count c
         set count = rest.count, bytes = rest.bytes
        from (
          select id,
                 count(*) filter (where nth <= $2 and (bytes_to_here <= $3 or nth = 1)) as count,
                 coalesce(sum(bytes)
                   filter (where nth <= $2 and (bytes_to_here <= $3 or nth = 1)), 0) as bytes
            from placed group by id
        ) as rest
       where c.device_id = rest.id`,
    values: [deviceIds, keptRejections, maxBytes],
  });
}

type RejectionRow = {
  rejected_at: number;
  topic: string;
  reason: string;
  message: string;
  path: string | null;
  payload: string;
  more: number | null;
  details: RejectionDetails | null;
};

/** Newest first, at most `limit`. */
async function listRejections(db: Sql, deviceId: number, limit: number): Promise<RejectionRow[]> {
  const { rows } = await db.query<RejectionRow>(
    `
      select rejected_at, topic, reason, message, path, more, details,
             coalesce(nullif(payload, ''), (
               select left(of_message.payload, 1024)
                 from rejection of_message
                where of_message.device_id = r.device_id
                  and of_message.message_id = r.message_id
                  and of_message.payload <> ''
                order by of_message.item
                limit 1), '') as payload
        from rejection r
       where device_id = $1
       order by rejected_at desc, message_id, more is not null, item, path
       limit $2`,
    [deviceId, limit],
  );
  return rows;
}

/** What a device sent that was rejected. */
export function rejectionsRoute({ db }: { db: Sql }): Route {
  return defineRoute({
    name: 'listRejections',
    scope: 'devices:read',
    method: 'get',
    path: '/v2/devices/{deviceAuthUuid}/rejections',
    summary: 'List rejected items of a device',
    description:
      'Newest first. The newest 1,000 rejections of a device are kept, at most 1 MiB. Of one ' +
      'message, the first 10 are kept individually and the rest as a number; of one minute, ' +
      'the first 60. Further rejections in that minute are counted in a single ' +
      '`more-of-minute` entry, in `more`.',
    tag: 'Devices',
    auth: 'account',
    params: DeviceParams,
    query: RejectionsQuery,
    response: RejectionList,
    errors: [404],
    answerBytes: 4_194_304,
    handler: async ({ account, params, query, request }) => {
      const deviceId = await findDeviceId(db, account.accountId, params.deviceAuthUuid);
      if (deviceId === null) throw noSuchDevice();
      const rows = await listRejections(db, deviceId, query.limit);
      const rejections = rows.map(({ rejected_at, path, more, details, ...rest }) => ({
        timestamp: rejected_at,
        ...rest,
        path: path ?? undefined,
        more: more ?? undefined,
        details: details ?? undefined,
      }));
      return { rejections, timestamp: request.now() };
    },
  });
}
