import type { Rejection } from '../core/rejection.ts';
import type { Sql } from '../db/sql.ts';

/** An item that is kept but not taken for what it claims to be; `messageId` and `item` make a retry harmless. */
export type NewRejection = Rejection & {
  deviceId: number;
  messageId: string;
  item: number;
  /** Of its arrival, ms. */
  ts: number;
  topic: string;
  payload: string;
};

/** Rejections kept of each device; a few hundred more may gather before the oldest are removed. */
const keptRejections = 1_000;

/** Stores rejections, and now and then removes all but the newest of a device. */
export async function keepRejections(tx: Sql, rejections: readonly NewRejection[]): Promise<void> {
  if (rejections.length === 0) return;
  await insertRejections(tx, rejections);
  const full = chooseFull(rejections);
  if (full.length > 0) await trimRejections(tx, full, keptRejections);
}

/**
 * Once in about 256 rejections of a device it is time to look how many there are. Message
 * identifiers are random, so they are the dice.
 */
function chooseFull(rejections: readonly NewRejection[]): number[] {
  const chances = new Map<number, { count: number; roll: number }>();
  for (const { deviceId, messageId } of rejections) {
    const roll = Number.parseInt(messageId.slice(0, 2), 16);
    const chance = chances.get(deviceId) ?? { count: 0, roll };
    chances.set(deviceId, { count: chance.count + 1, roll: Math.min(chance.roll, roll) });
  }
  return [...chances].filter(([, { count, roll }]) => roll < count).map(([deviceId]) => deviceId);
}

async function insertRejections(tx: Sql, rejections: readonly NewRejection[]): Promise<void> {
  await tx.query({
    name: 'devices-keep-rejections',
    text: `
      insert into rejection
        (device_id, message_id, item, rejected_at, topic, reason, message, path, payload)
      select device_id, message_id, item, ms_to_timestamp(ts), topic, reason, message, path, payload
        from unnest($1::bigint[], $2::uuid[], $3::integer[], $4::bigint[], $5::text[],
                    $6::text[], $7::text[], $8::text[], $9::text[])
          as r (device_id, message_id, item, ts, topic, reason, message, path, payload)
      on conflict do nothing`,
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
    ],
  });
}

/** Removes all but the newest `keep` of each of these devices. */
async function trimRejections(tx: Sql, deviceIds: number[], keep: number): Promise<void> {
  await tx.query({
    name: 'devices-trim-rejections',
    // By their places, in an array: joined, the whole table might be read.
    text: `
      delete from rejection
       where ctid = any(array(
         select oldest.ctid
           from unnest($1::bigint[]) as full_device (id)
          cross join lateral (
            select r.ctid
              from rejection r
             where r.device_id = full_device.id
             order by r.rejected_at desc, r.message_id, r.item
            offset $2
          ) as oldest
       ))`,
    values: [deviceIds, keep],
  });
}

type RejectionRow = {
  rejected_at: number;
  topic: string;
  reason: string;
  message: string;
  path: string | null;
  payload: string;
};

/** Newest first, `limit` at most. */
export async function listRejections(
  db: Sql,
  deviceId: number,
  limit: number,
): Promise<RejectionRow[]> {
  const { rows } = await db.query<RejectionRow>(
    `
      select rejected_at, topic, reason, message, path, payload
        from rejection
       where device_id = $1
       order by rejected_at desc, message_id, item
       limit $2`,
    [deviceId, limit],
  );
  return rows;
}
