import type { NewEvent } from '../contract/event.ts';
import type { Sql } from '../db/sql.ts';
import { slicesOf } from '../lib/text.ts';

/**
 * Records a batch of events within the caller's transaction and gives those that are new: an event
 * that was delivered before (same device, type, time and key) stays once.
 */
export async function recordEvents(tx: Sql, events: readonly NewEvent[]): Promise<NewEvent[]> {
  if (events.length === 0) return [];
  const given = new Map<string, NewEvent>();
  for (const event of events) {
    const name = nameOf(event.deviceId, event.event.type, event.event.ts, event.key);
    if (!given.has(name)) given.set(name, event);
  }
  const named = [...given];
  const recorded: NewEvent[] = [];
  for (const some of slicesOf(named, atOnce)) recorded.push(...(await recordNamed(tx, some)));
  return recorded;
}

/** Events in one statement: one measurement can fire thousands, and to write them out takes 10 µs each. */
const atOnce = 400;

async function recordNamed(tx: Sql, named: [string, NewEvent][]): Promise<NewEvent[]> {
  const rows = await insertEvents(
    tx,
    named.map(([, event]) => event),
  );
  const fresh = new Set(rows.map((row) => nameOf(row.device_id, row.type, row.ts, row.key)));
  return named.filter(([name]) => fresh.has(name)).map(([, event]) => event);
}

type InsertedRow = { device_id: number; type: string; ts: number; key: string };

async function insertEvents(tx: Sql, events: NewEvent[]): Promise<InsertedRow[]> {
  const senses = events.flatMap((event) =>
    sensesOf(event).map((sId) => ({
      deviceId: event.deviceId,
      ts: event.event.ts,
      key: event.key,
      sId,
    })),
  );
  const { rows } = await tx.query<InsertedRow>({
    name: 'record-events',
    text: `
      with fresh as (
        insert into event (device_id, type, ts, key, body)
        select device_id, type, ms_to_timestamp(ms), key, body::json
          from unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::text[])
            as g (device_id, type, ms, key, body)
            on conflict do nothing
        returning device_id, type, ts, key, seq, body
      ), by_sense as (
        insert into event_sense (device_id, s_id, ts, key, seq, body)
        select f.device_id, g.s_id, f.ts, f.key, f.seq, f.body
          from unnest($6::bigint[], $7::bigint[], $8::text[], $9::text[])
            as g (device_id, ms, key, s_id)
          join fresh f
            on f.device_id = g.device_id and f.type = 'sense'
           and f.ts = ms_to_timestamp(g.ms) and f.key = g.key
            on conflict do nothing
      ), tail as (
        insert into event_feed (account_id, seq, device_id, type, ts, body)
        select g.account_id, f.seq, f.device_id, f.type, f.ts, f.body
          from fresh f
          join (select distinct device_id, account_id
                  from unnest($1::bigint[], $10::bigint[]) as u (device_id, account_id)) g
         using (device_id)
      )
      select device_id, type, ts, key from fresh`,
    values: [
      events.map((e) => e.deviceId),
      events.map((e) => e.event.type),
      events.map((e) => e.event.ts),
      events.map((e) => e.key),
      events.map(bodyOf),
      senses.map((s) => s.deviceId),
      senses.map((s) => s.ts),
      senses.map((s) => s.key),
      senses.map((s) => s.sId),
      events.map((e) => e.accountId),
    ],
  });
  return rows;
}

function nameOf(deviceId: number, type: string, ts: number, key: string): string {
  return `${deviceId} ${type} ${ts} ${key}`;
}

/** Type and time have columns of their own. */
function bodyOf({ event }: NewEvent): string {
  const { type: _type, ts: _ts, ...body } = event;
  return JSON.stringify(body);
}

function sensesOf({ event }: NewEvent): string[] {
  return event.type === 'sense' ? [...new Set(event.cause.senses.map(({ sId }) => sId))] : [];
}
