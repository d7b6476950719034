import type { NewEvent } from '../core/event.ts';
import type { Sql } from '../db/database.ts';

/**
 * Records a batch of events within the caller's transaction and gives those that are new: an event
 * that was delivered before (same device, type, time and key) stays once.
 */
export async function recordEvents(tx: Sql, events: readonly NewEvent[]): Promise<NewEvent[]> {
  if (events.length === 0) return [];
  const { rows } = await tx.query<{ device_id: number; ts: number; key: string }>({
    name: 'record-events',
    text: `
      with given as (
        select * from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[])
          as g (account_id, device_id, ms, key, type, body)
      ), fresh as (
        insert into event (device_id, type, ts, key, body)
        select device_id, type, ms_to_timestamp(ms), key, body::json from given
        on conflict do nothing
        returning device_id, ts, key, type, seq, body
      ), by_sense as (
        insert into event_sense (device_id, s_id, ts, key)
        select distinct f.device_id, s.cause ->> 'sId', f.ts, f.key
          from fresh f
         cross join json_array_elements(f.body -> 'cause' -> 'senses') as s (cause)
        on conflict do nothing
      ), tail as (
        insert into event_feed (seq, account_id, device_id, type, ts, body)
        select f.seq, g.account_id, f.device_id, f.type, f.ts, f.body
          from fresh f
          join (select distinct account_id, device_id from given) g using (device_id)
      )
      select device_id, ts, key from fresh`,
    values: [
      events.map((e) => e.accountId),
      events.map((e) => e.deviceId),
      events.map((e) => e.event.ts),
      events.map((e) => e.key),
      events.map((e) => e.event.type),
      events.map((e) => bodyOf(e)),
    ],
  });
  const fresh = new Set(rows.map((row) => `${row.device_id} ${row.ts} ${row.key}`));
  // Taken out as it is found: of two that are the same in one batch only the first is new.
  return events.filter((e) => fresh.delete(`${e.deviceId} ${e.event.ts} ${e.key}`));
}

/** Type and time have columns of their own. */
function bodyOf({ event }: NewEvent): string {
  const { type: _type, ts: _ts, ...body } = event;
  return JSON.stringify(body);
}
