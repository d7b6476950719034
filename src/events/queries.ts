import type { QueryConfig } from 'pg';
import type { Sql } from '../db/database.ts';
import { DomainError } from '../errors.ts';
import type { EventCursor } from './schema.ts';
import type { EventRow } from './view.ts';

/** Throws `not-found`, also for a device of somebody else. */
export async function getDeviceId(sql: Sql, accountId: number, uuid: string): Promise<number> {
  const { rows } = await sql.query<{ id: number }>({
    name: 'own-device',
    text: 'select id from device where uuid = $1 and account_id = $2',
    values: [uuid, accountId],
  });
  if (!rows[0]) throw new DomainError('not-found', 'There is no such device.');
  return rows[0].id;
}

/** Events of one device, by type or by the senses that had a part; times in ms, inclusive. */
export type EventFilter = {
  deviceId: number;
  type?: 'device' | 'sense' | undefined;
  senses?: string[] | undefined;
  start: number;
  end?: number | undefined;
  /** Only what lies behind this event. */
  after?: EventCursor | undefined;
};

export type ListedEvent = EventRow & { key: string };

/** A page of a list is 10 at most, and one more tells whether there is another page. */
const pageRows = 11;

/** The first 11 that match, newest first; what shares a millisecond is ordered by its key. */
export async function listEvents(sql: Sql, filter: EventFilter): Promise<ListedEvent[]> {
  const { rows } = await sql.query<ListedEvent>(listEventsQuery(filter));
  return rows;
}

/**
 * Each type, or each sense, is read newest first from its own stretch of an index, and no further
 * than a page. The statements are named so that the plan over all the chunks, which takes longer than
 * the answer, is made once; and they are written so that it cannot look cheaper to the planner to plan
 * for each question anew.
 */
export function listEventsQuery(filter: EventFilter): QueryConfig {
  const { deviceId, type, senses, start, end = lastTs, after = [lastTs, ''] } = filter;
  const bySense = senses !== undefined && senses.length > 0;
  return {
    name: bySense ? 'list-events-by-sense' : 'list-events',
    text: bySense ? byTag('event_sense', 's_id', `'sense'`) : byTag('event', 'type', 'tag'),
    values: [
      deviceId,
      bySense ? (type === 'device' ? [] : senses) : type ? [type] : ['device', 'sense'],
      start,
      Math.min(end, after[0]),
      ...after,
    ],
  };
}

/** After every event there can be: the end of what both sides can hold, in ms. */
const lastTs = 8_640_000_000_000_000;

/** What is asked stands in a sub-select, out of the planner's sight; see `listEventsQuery`. */
function byTag(table: 'event' | 'event_sense', column: 'type' | 's_id', type: string): string {
  return `
    select distinct on (ts, key) ${type} as type, ts, key, seq, body
      from (select $1::bigint as device_id, $2::text[] as tags,
                   ms_to_timestamp($3) as first_ts, ms_to_timestamp($4) as last_ts,
                   ms_to_timestamp($5) as after_ts, $6::text as after_key
            offset 0) asked
     cross join unnest(asked.tags) as wanted (tag)
     cross join lateral (
       select e.ts, e.key, e.seq, e.body
         from ${table} e
        where e.device_id = asked.device_id
          and e.${column} = wanted.tag
          and e.ts between asked.first_ts and asked.last_ts
          and (e.ts, e.key) < (asked.after_ts, asked.after_key)
        order by e.ts desc, e.key desc
        limit ${pageRows}) found
     order by ts desc, key desc
     limit ${pageRows}`;
}
