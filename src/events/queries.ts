import type { QueryConfig } from 'pg';
import type { SenseEvent } from '../contract/event.ts';
import type { Sql } from '../db/sql.ts';
import { lastTs } from '../http/schema.ts';
import { type EventFilters, findContradictions, indexFor } from './filter.ts';
import type { EventCursor, EventRow } from './schema.ts';
import type { WallMs } from '../lib/clock-readings.ts';

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
