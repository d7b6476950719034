import { documentsOf, jsonSequence, plainArrays, unseenArray } from '../db/array.ts';
import type { Database } from '../db/database.ts';
import { deleteInBatches } from '../db/delete-in-batches.ts';
import type { Sql } from '../db/sql.ts';
import type { Downlink } from '../contract/uplink.ts';

/** A text for a device's display, and the state whose newest it is. `ts`: of its event, ms. */
export type DisplayRow = {
  deviceId: number;
  puId: number;
  stId: number;
  text: string;
  ts: number;
  /** What the device is sent; it is told under which identifier the text is kept. */
  message: Downlink;
};

/** Of these a device has acknowledged its kept texts from one identifier to another, both included. */
export type SeenDisplays = { deviceId: number; fromId: number; toId: number };

/** More are not kept of a device: the oldest goes. */
const maxKeptDisplays = 10;

/** SQL: how long a text is kept. */
const displayLifetime = `interval '1 day'`;

/**
 * Keeps texts within ingest's transaction, which holds the devices' states, and notes in their messages what
 * acknowledges them. The last one of a state replaces the others.
 */
export async function keepDisplays(tx: Sql, rows: Iterable<DisplayRow>): Promise<void> {
  // By device, so that two transactions wait for each other in one direction.
  const ordered = [...rows].toSorted((one, other) => one.deviceId - other.deviceId);
  const deviceIds = ordered.map(({ deviceId }) => deviceId);
  const [stored] = await Promise.all([upsert(tx, ordered), removeBeyond(tx, deviceIds)]);
  const byState = new Map(ordered.map((row) => [`${row.deviceId} ${row.puId} ${row.stId}`, row]));
  for (const { device_id, pu_id, st_id, id } of stored) {
    const row = byState.get(`${device_id} ${pu_id} ${st_id}`);
    if (row) row.message.keptId = id;
  }
}

type StoredRow = { device_id: number; pu_id: number; st_id: number; id: number };

async function upsert(tx: Sql, rows: DisplayRow[]): Promise<StoredRow[]> {
  const { rows: stored } = await tx.query<StoredRow>({
    name: 'displays-keep',
    text: `
      insert into kept_display (device_id, pu_id, st_id, text, ts, kept_at)
      select device_id, pu_id, st_id, text::json #>> '{}', ts, service_now()
        from unnest($1::bigint[], $2::integer[], $3::integer[], ${documentsOf('$4')}, $5::bigint[])
          as n (device_id, pu_id, st_id, text, ts)
          on conflict (device_id, pu_id, st_id) do update
         set id = excluded.id, text = excluded.text, ts = excluded.ts, kept_at = excluded.kept_at
      returning device_id, pu_id, st_id, id`,
    values: [
      ...plainArrays(
        rows.map(({ deviceId }) => deviceId),
        rows.map(({ puId }) => puId),
        rows.map(({ stId }) => stId),
      ),
      jsonSequence(rows.map(({ text }) => JSON.stringify(text))),
      ...plainArrays(rows.map(({ ts }) => ts)),
    ],
  });
  return stored;
}

async function removeBeyond(tx: Sql, deviceIds: number[]): Promise<void> {
  await tx.query({
    name: 'displays-remove-beyond',
    text: `
      delete from kept_display k
       using (select device_id, id, row_number() over (partition by device_id order by id desc) as place
                from kept_display
               where device_id = any($1::bigint[])) as n
       where k.device_id = n.device_id and k.id = n.id and n.place > ${maxKeptDisplays}`,
    values: [deviceIds],
  });
}

/** What each of these devices has not acknowledged, the oldest first; those without a text are left out. */
export async function listKept(db: Sql, deviceIds: number[]): Promise<Map<number, Downlink[]>> {
  const { rows } = await db.query<{ device_id: number; id: number; text: string; ts: number }>({
    name: 'displays-kept',
    text: `
      select device_id, id, text, ts
        from kept_display
       where device_id = any(${unseenArray('$1', 'bigint')})
         and kept_at + ${displayLifetime} > service_now()
       order by device_id, id`,
    values: [deviceIds],
  });
  const kept = new Map<number, Downlink[]>();
  for (const { device_id: deviceId, id: keptId, text, ts } of rows) {
    const messages = kept.get(deviceId) ?? [];
    messages.push({ topic: 'display', payload: { text, ts }, keptId });
    kept.set(deviceId, messages);
  }
  return kept;
}

/** Forgets texts that devices have. One that is being replaced is left: it waits for nobody. */
export async function forgetSeen(db: Sql, seen: SeenDisplays[]): Promise<void> {
  await db.query({
    name: 'displays-forget-seen',
    text: `
      delete from kept_display
       where ctid = any(array(
         select k.ctid
           from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as n (device_id, from_id, to_id)
           join kept_display k on k.device_id = n.device_id and k.id between n.from_id and n.to_id
            for update of k skip locked))`,
    values: plainArrays(
      seen.map(({ deviceId }) => deviceId),
      seen.map(({ fromId }) => fromId),
      seen.map(({ toId }) => toId),
    ),
  });
}

/** Forgets texts whose time is over. */
export async function forgetOldDisplays(
  db: Database,
  nowTs: number,
  signal?: AbortSignal,
): Promise<void> {
  const deleteSome = (limit: number) =>
    db.query(
      `delete from kept_display
        where ctid = any(array(
          select ctid from kept_display
           where kept_at + ${displayLifetime} < ms_to_timestamp($2)
           limit $1
             for update skip locked))`,
      [limit, nowTs],
    );
  await deleteInBatches(deleteSome, { signal });
}
