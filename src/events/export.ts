import type { Sql } from '../db/sql.ts';
import type { SelectedDevice } from '../devices/select.ts';
import { refuseTooMuch, walkSlices } from '../exports/exports.ts';
import { comparisonOf, type EventFilters, indexFor } from './filter.ts';
import { meaningsOf } from './meanings.ts';

/*
 * The events of many devices, as text that the database writes: JSON, lines of JSON, or CSV.
 */

/** Throws `invalid-input` if the range holds more events than one answer may. */
export async function refuseTooManyEvents(
  db: Sql,
  devices: SelectedDevice[],
  filter: EventExportFilter,
): Promise<void> {
  const { table, column, tags } = indexFor(filter);
  const text = `
    select from ${table}
     where device_id = any($1::bigint[]) and ${column} = any($2::text[])
       and ts between ms_to_timestamp($3) and ms_to_timestamp($4)`;
  const values = [devices.map(({ id }) => id), tags, filter.start, filter.end];
  await refuseTooMuch(
    db,
    { text, values },
    { most: 1_000_000, what: 'events', instead: 'a shorter range, fewer devices or a single type' },
  );
}

/** RFC 4180: text that contains a quote, a comma or a line break is quoted. */
const quoted = (text: string) => `
  case when ${text} ~ '[",\r\n]' then concat('"', replace(${text}, '"', '""'), '"') else ${text} end`;

/** Marks text that a spreadsheet would take for a formula. The console's downloads do the same with names. */
const harmless = (text: string) =>
  `concat(case when ${text} ~ '^[-=+@\t\r]' then '''' end, ${text})`;

const columns: [name: string, sql: string][] = [
  ['deviceAuthUuid', 'uuid'],
  ['timestamp', 'ms'],
  ['type', 'type'],
  ['eventId', 'seq'],
  ['event', 'event.event'],
  ['newValue', 'event."newValue"'],
  ['oldValue', 'event."oldValue"'],
  // Devices that evaluate for themselves report it, so it may be any text.
  ['pId', quoted(harmless('engine."pId"'))],
  ['puId', 'engine."puId"'],
  ['stId', 'engine."stId"'],
  ['evId', 'engine."evId"'],
  // What fired it, as `0x10=9.7 0x11=1`. A position is 1 (inside) or 0.
  ['senses', quoted('fired.senses')],
  ['notified', 'event.notified'],
  ['notNotified', 'event."notNotified"'],
];

/** What the event is called, in the last columns. */
const names = ['purposeName', 'stateName', 'eventName'];

/** The line before those of `walkEvents`. */
export const csvHeader = `${[...columns.map(([name]) => name), ...names].join(',')}\r\n`;

/**
 * One line, as SQL. Members that an event lacks are empty. One record instead of an accessor for each column:
 * every accessor would parse the body again.
 */
const csvRow = `(
  select concat(${columns.map(([, sql]) => sql).join(", ',', ")}, coalesce(said, '${','.repeat(names.length)}'),
                chr(13), chr(10))
    from json_to_record(body) as event
           (event text, "newValue" text, "oldValue" text, cause json, notified text, "notNotified" text),
         json_to_record(event.cause) as cause (engine json, senses json),
         json_to_record(cause.engine) as engine ("pId" text, "puId" text, "stId" text, "evId" text),
         lateral (select string_agg(concat(s->>'sId', '=', s->>'val'), ' ') as senses
                    from json_array_elements(cause.senses) as s) as fired)`;

/** Selects events of each device. Times in ms, inclusive. */
type EventExportFilter = EventFilters & {
  /** Whose devices these are. */
  accountId: number;
  start: number;
  end: number;
  order: 'asc' | 'desc';
};

type EventFormat = 'json' | 'ndjson' | 'csv';

/** An event of a device, by its key: the next block begins after it. */
type Place = { ts: number; key: string; type: string };

type BlockRow = Place & { place: number; count: number; isFull: boolean; text: string | null };

/** Bounds of one statement: events, their characters (it reads at least one event), and devices. */
const blockEvents = 2_000;
const blockCharacters = 4_194_304;
const blockDevices = 500;
/** Events of the first statement, so that the answer begins soon. */
const firstEvents = 100;

/**
 * From `first_ms` to `last_ms`, inclusive. For two bounds on one column PostgreSQL estimates that a 200th of the
 * rows match; if a device's events lie in several chunks of TimescaleDB, it then reads and sorts all of them. It
 * estimates a bound on the whole key separately, and reads the rows in index order, no further than needed. The
 * other bound stays plain so that TimescaleDB can skip earlier chunks.
 */
const within = {
  asc: `e.ts >= ms_to_timestamp(w.first_ms) and (e.ts, e.key) < (ms_to_timestamp(w.last_ms + 1), '')`,
  desc: `e.ts < ms_to_timestamp(w.last_ms + 1) and (e.ts, e.key) >= (ms_to_timestamp(w.first_ms), '')`,
};

/** As `EventView` has it. `body` is an object and never empty. */
const json = `concat(
  '{"timestamp":', ms, ',"type":"', type, '","deviceAuthUuid":"', uuid, '",',
  substr(body::text, 2, length(body::text) - 2), ',"eventId":"', seq, '"', said, '}')`;

/**
 * What events are called, put together once for each cause: for each event that takes as long as the rest of its line.
 * A cause of a device may have numbers that no purpose can have.
 */
const meanings = (said: string) => `
      caused as (
        select n, of."pId" as p_id, of."puId" as pu_id, of."stId" as st_id, of."evId" as ev_id
          from block
         cross join lateral (
           select * from json_to_record(body#>'{cause,engine}')
                      as engine ("pId" text, "puId" bigint, "stId" bigint, "evId" bigint)
           offset 0) of
      ), causes as (
        select distinct p_id, pu_id, st_id, ev_id from caused where p_id is not null
      ), meant as materialized (
        select distinct on (p_id, pu_id, st_id, ev_id) p_id, pu_id, st_id, ev_id, ${said} as said
          from ${meaningsOf('causes', '$10')} as m
      )`;

const withMeanings = `
  left join caused using (n)
  left join meant using (p_id, pu_id, st_id, ev_id)`;

const saidInJson = `',"meaning":' || m.body::text`;
const saidInCsv = `concat(${names.map((name) => `',', ${quoted(harmless(`m.body->>'${name}'`))}`).join(', ')})`;

const texts: Record<EventFormat, { text: string; said: string; separator: string }> = {
  json: { text: json, said: saidInJson, separator: ',' },
  ndjson: { text: `${json} || chr(10)`, said: saidInJson, separator: '' },
  csv: { text: csvRow, said: saidInCsv, separator: '' },
};

/**
 * All events of some devices, device by device, as text that the database writes. The first blocks are small, and
 * a block may be empty, so the answer begins at once however many events there are and however few match.
 */
export function walkEvents(
  sql: Sql,
  devices: SelectedDevice[],
  filter: EventExportFilter,
  format: EventFormat,
): AsyncGenerator<string> {
  // A sense event has an index entry for each of its senses, and this statement sorts them.
  const most = Math.max(100, Math.floor((2 * blockEvents) / indexFor(filter).tags.length));
  let next = Math.min(firstEvents, most);
  return walkSlices(devices, blockDevices, async (slice, after: Place | null) => {
    const row = await readBlock(sql, slice, { ...filter, after, most: next }, format);
    next = Math.min(4 * next, most);
    if (!row) return { block: '', stop: null };
    const { place, ts, key, type, isFull, text } = row;
    return { block: text ?? '', stop: isFull ? { place, after: { ts, key, type } } : null };
  });
}

/**
 * Reads events after `after` of the slice's first device, then of the others, until there are enough. Events that a
 * filter without an index leaves out count too, so that a statement is bounded however few match.
 */
async function readBlock(
  sql: Sql,
  slice: SelectedDevice[],
  filter: EventExportFilter & { after: Place | null; most: number },
  format: EventFormat,
): Promise<BlockRow | undefined> {
  const { accountId, start, end, order, after, most } = filter;
  const { table, column, type, tags } = indexFor(filter);
  const comparison = comparisonOf(filter, 11);
  const { text, said, separator } = texts[format];
  const beyond = order === 'asc' ? '>' : '<';
  const inOrder = `place, ts ${order}, key ${order}, type ${order}`;
  const { rows } = await sql.query<BlockRow>({
    name: `export-${table}-${format}-${order}`,
    // Looks at the devices in their order, and no further than needed.
    text: `
      with found as (
        select w.place, w.uuid, e.*
          from unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[])
                 with ordinality as w (device_id, uuid, first_ms, last_ms, place)
         cross join lateral (
           select distinct on (e.ts, e.key, e.type) e.*
             from unnest($5::text[]) as wanted (tag)
            cross join lateral (
              select e.ts, e.key, ${type} as type, e.seq, e.body
                from ${table} e
               where e.device_id = w.device_id and e.${column} = wanted.tag
                 and ${within[order]}
                 and ($6::bigint is null or w.place > 1
                      or (e.ts, e.key, ${type}) ${beyond} (ms_to_timestamp($6), $7::text, $8::text))
               order by e.ts ${order}, e.key ${order}
               limit $9) e
            order by e.ts ${order}, e.key ${order}, e.type ${order}
            limit $9) e
         limit $9
      ), numbered as (
        select *, row_number() over (order by ${inOrder}) as n, count(*) over () as count,
               sum(length(body::text)) over (order by ${inOrder}) - length(body::text) as before,
               (extract(epoch from ts) * 1000)::bigint as ms
          from found
      ), block as (
        select * from numbered where before < ${blockCharacters}
      ), ${meanings(said)}
      select last.place::integer, last.ms as ts, last.key, last.type,
             last.n < last.count or last.count = $9 as "isFull",
             (select string_agg(${text}, '${separator}' order by n)
                from block ${withMeanings}
               where ${comparison.sql}) as text
        from (select * from block order by n desc limit 1) last`,
    values: [
      slice.map(({ id }) => id),
      slice.map(({ uuid }) => uuid),
      slice.map((_, n) => (n === 0 && after && order === 'asc' ? after.ts : start)),
      slice.map((_, n) => (n === 0 && after && order === 'desc' ? after.ts : end)),
      tags,
      after?.ts ?? null,
      after?.key ?? null,
      after?.type ?? null,
      most,
      accountId,
      ...comparison.values,
    ],
  });
  return rows[0];
}
