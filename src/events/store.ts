import type { QueryConfig } from 'pg';
import type { NewEvent, SenseEvent } from '../contract/event.ts';
import type { Sql } from '../db/sql.ts';
import { lastTs } from '../http/schema.ts';
import type { WallMs } from '../lib/clock-readings.ts';
import { slicesOf } from '../lib/text.ts';
import { type EventFilters, findContradictions, indexFor } from './filter.ts';
import type { EventCursor, EventRow } from './schema.ts';

/*
 * The events in the database: they are recorded, listed newest first for one device, and found by their cause. Events
 * of many devices are read by `export.ts`, and those of a stream by `feed.ts`.
 */

/**
 * Records a batch of events in the caller's transaction and returns those that are new. An event that was
 * delivered before (same device, type, time and key) is recorded once.
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

/** Events per statement. One measurement can fire thousands, and writing each out takes 10 µs. */
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

/** Events of one device that match the filters. Times in ms, inclusive. */
export type ListedRange = Pick<EventFilters, 'type' | 'senses'> & {
  deviceId: number;
  start: number;
  end?: number | undefined;
  /** Only events that come after this one in the list. */
  after?: EventCursor | undefined;
};

type ListedEvent = EventRow & { key: string };

/** A page lists at most 10 events; one more shows whether another page follows. */
const pageRows = 11;

/** Newer events are not in the columnstore yet, and lie in at most three chunks. */
const recentMs = 14 * 86_400_000;

/**
 * The first 11 events that match, newest first, and by key within a millisecond. Clients poll the first page, so
 * it queries the last two weeks first. They usually fill the page, and the cost does not grow with the history.
 * If they do not, it queries everything. `nowTs`: when the request arrived, in ms.
 */
export async function listEvents(
  sql: Sql,
  filter: ListedRange,
  nowTs: WallMs,
): Promise<ListedEvent[]> {
  const { start, end = lastTs, after } = filter;
  if (findContradictions(filter).length > 0) return [];
  const recentTs = Math.max(start, nowTs - recentMs);
  if (!after && recentTs <= end) {
    const recent = await sql.query<ListedEvent>(recentEventsQuery({ ...filter, start: recentTs }));
    if (recent.rows.length === pageRows || recentTs === start) return recent.rows;
  }
  const { rows } = await sql.query<ListedEvent>(listEventsQuery(filter));
  return rows;
}

/**
 * Reads each type, or each sense, newest first from its own range of an index, at most one page. The statement is
 * named so that the plan over all chunks, which takes longer than the query, is made once. Its parameters are
 * hidden from the planner, so that planning each query anew never looks cheaper.
 */
function listEventsQuery(filter: ListedRange): QueryConfig {
  return toQuery(filter, 'offset 0');
}

/**
 * The same query, planned each time with known times: planning over a few chunks takes less time than opening a
 * plan over a year of them.
 */
function recentEventsQuery(filter: ListedRange): QueryConfig {
  const { text, values } = toQuery(filter, '');
  return { text, values };
}

/** A sub-select with `offset 0` hides its contents from the planner. */
function toQuery(filter: ListedRange, hidden: 'offset 0' | ''): QueryConfig {
  const { deviceId, start, end = lastTs, after = [lastTs, ''] } = filter;
  const { table, column, type, tags } = indexFor(filter);
  const text = `
    select distinct on (ts, key) type, ts, key, seq, body
      from (select $1::bigint as device_id, $2::text[] as tags,
                   ms_to_timestamp($3) as first_ts, ms_to_timestamp($4) as last_ts,
                   ms_to_timestamp($5) as after_ts, $6::text as after_key
            ${hidden}) asked
     cross join unnest(asked.tags) as wanted (tag)
     cross join lateral (
       select ${type} as type, e.ts, e.key, e.seq, e.body
         from ${table} e
        where e.device_id = asked.device_id
          and e.${column} = wanted.tag
          and e.ts between asked.first_ts and asked.last_ts
          and (e.ts, e.key) < (asked.after_ts, asked.after_key)
        order by e.ts desc, e.key desc
        limit ${pageRows}) found
     order by ts desc, key desc
     limit ${pageRows}`;
  const values = [deviceId, tags, start, Math.min(end, after[0]), ...after];
  return { name: `list-${table}`, text, values };
}

/** Finds the id of a device's recorded event by its cause; undefined if no such event is recorded. */
export async function findEventId(
  sql: Sql,
  deviceUuid: string,
  { engine, senses }: Pick<SenseEvent['cause'], 'engine' | 'senses'>,
): Promise<string | undefined> {
  const { rows } = await sql.query<{ eventId: string }>({
    name: 'find-event-id',
    // Compares the events of one millisecond, usually a single one.
    text: `
      select e.seq::text as "eventId"
        from event e
       where e.device_id = (select id from device where uuid = $1)
         and e.type = 'sense' and e.ts = ms_to_timestamp($2)
         and (e.body->'cause')::jsonb = $3::jsonb
       limit 1`,
    values: [deviceUuid, engine.ts, JSON.stringify({ engine, senses })],
  });
  return rows[0]?.eventId;
}
