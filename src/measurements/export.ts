import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { asJsonList, asLines, refuseTooMuch, typeOf, walkSlices } from '../exports/exports.ts';
import { listAskedDevices, refuseLabelList } from '../devices/select.ts';
import { stream, type Streamed } from '../http/answer.ts';
import type { RequestInfo } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { labelsOf } from '../http/router.ts';
import { lastTs } from '../http/schema.ts';
import { csvType, ndjsonType } from '../lib/text.ts';
import type { Exports } from '../quotas/exports.ts';
import {
  type BucketWidth,
  ExportQuery,
  ExportResponse,
  type StatName,
  unitMs,
  widestBucketMs,
} from './schema.ts';

const defaultStats = ['min', 'max', 'avg', 'last', 'count'] as const;

/** The measurements of many devices in one answer, which is sent while it is read. */
export function exportRoute({ db, exports }: { db: Database; exports: Exports }): Route {
  return defineRoute({
    name: 'queryMeasurements',
    scope: 'data:read',
    method: 'get',
    path: '/v2/measurements',
    summary: 'Query the measurements of many devices',
    description:
      'All points in the range, or buckets of them, from the named devices or from those with ' +
      'a label, one series after the other. JSON, CSV or, with `Accept: application/x-ndjson`, ' +
      'one line per point or bucket. At most ten million points.',
    tag: 'Measurements',
    errors: [400, 404],
    streams: { types: [csvType, ndjsonType], json: true },
    auth: 'account',
    answerBytes: 16_777_216,
    query: ExportQuery,
    response: ExportResponse,
    handler: async ({ query, account, request }) => {
      const { accountId } = account;
      const filter = {
        accountId,
        uuids: query.devices,
        label: query.label,
        senses: query.senses?.length ? query.senses : undefined,
        within: labelsOf(account),
      };
      await refuseLabelList(db, accountId, { label: query.label, labels: filter.within });
      if (query.devices && query.label === undefined) {
        await listAskedDevices(db, accountId, { uuids: query.devices, labels: filter.within });
      }
      const series = await listExportSeries(db, filter);
      const { start = 0, end = lastTs, order } = query;
      const range = { start, end, order };
      await refuseTooManyPoints(db, series, range);
      const run = <T>(pages: AsyncIterable<T>) => exports.run(accountId, request.signal, pages);
      return query.bucket
        ? answerBuckets({ db, series, range, run, request }, query)
        : answerPoints({ db, series, range, run, request }, query);
    },
  });
}

type Asked = {
  db: Database;
  series: ExportSeries[];
  range: ExportRange;
  run: <T>(pages: AsyncIterable<T>) => Promise<AsyncIterable<T>>;
  request: RequestInfo;
};

async function answerPoints(
  { db, series, range, run, request }: Asked,
  { shape, columns }: ExportQuery,
): Promise<Streamed> {
  const type = typeOf(request);
  const formats = { [csvType]: 'csv', [ndjsonType]: 'ndjson' } as const;
  const format =
    type === 'application/json' ? (shape === 'rows' ? 'json' : 'columns') : formats[type];
  const hasArrival = columns === 'arrivedTs';
  const blocks = await run(walkPoints(db, series, range, { format, hasArrival }));
  switch (format) {
    case 'json':
      return stream(type, asJsonList('measurements', blocks, pointItems, request.now()));
    case 'columns':
      return stream(type, asJsonList('series', blocks, seriesItems, request.now()));
    case 'ndjson':
      return stream(type, asLines(blocks, pointLines));
    case 'csv':
      return stream(type, asLines(blocks, pointLines, headerOf(hasArrival)));
  }
}

async function answerBuckets(
  { db, series, range, run, request }: Asked,
  { bucket, tz = 'UTC', stats = [...defaultStats] }: ExportQuery,
): Promise<Streamed> {
  const width = bucket ?? { count: 1, unit: 'h' as const };
  const blocks = await run(walkExportBuckets(db, series, range, { width, tz, stats }));
  const type = typeOf(request);
  if (type === csvType)
    return stream(type, asLines(blocks, bucketFields(stats), bucketHeader(stats)));
  if (type === ndjsonType) return stream(type, asLines(blocks, bucketLines));
  return stream(type, asJsonList('buckets', blocks, bucketItems, request.now()));
}

/** Selects senses of devices. `within`: only devices with one of these labels; null: any. */
type SeriesFilter = {
  accountId: number;
  uuids: string[] | undefined;
  label: string | undefined;
  senses: string[] | undefined;
  within: readonly string[] | null;
};

/** All series that ever had a value, by device and sense. */
async function listExportSeries(
  sql: Sql,
  { accountId, uuids, label, senses, within }: SeriesFilter,
): Promise<ExportSeries[]> {
  const { rows } = await sql.query<ExportSeries>({
    name: 'list-export-series',
    text: `
      select s.id as "seriesId", d.uuid as "deviceAuthUuid", s.s_id as "sId"
        from device d
        join series s on s.device_id = d.id
       where d.account_id = $1
         and ($2::uuid[] is null or d.uuid = any($2))
         and ($3::text is null or d.labels @> array[$3])
         and ($4::text[] is null or s.s_id = any($4))
         and ($5::text[] is null or d.labels && $5)
       order by d.id, s.s_id`,
    values: [accountId, uuids, label, senses, within],
  });
  return rows;
}

/** Throws `invalid-input` if the range holds more points than one answer may. */
async function refuseTooManyPoints(
  sql: Sql,
  series: ExportSeries[],
  { start, end }: ExportRange,
): Promise<void> {
  const text = `
    select from measurement
     where series_id = any($1::bigint[])
       and ts >= ms_to_timestamp($2) and ts < ms_to_timestamp($3::bigint + 1)`;
  const values = [series.map(({ seriesId }) => seriesId), start, end];
  await refuseTooMuch(
    sql,
    { text, values },
    {
      most: 10_000_000,
      what: 'points',
      instead: 'a shorter range, fewer devices or senses, or buckets (bucket=1h)',
    },
  );
}

/** A sense of a device, with the identifiers that its rows show. */
type ExportSeries = { seriesId: number; deviceAuthUuid: string; sId: string };

/** Times in ms, inclusive. */
type ExportRange = { start: number; end: number; order: 'asc' | 'desc' };

/** How points are written. For columns, `ts` and `val` are two lists. */
type PointFormat = 'json' | 'ndjson' | 'csv' | 'columns';

/** `hasArrival`: each row says when its point counts as arrived, and its place among what arrived then. */
type PointStyle = { format: PointFormat; hasArrival: boolean };

/** The text of some points of one series, ready to send. */
type PointBlock = { series: ExportSeries; text: string; vals: string };

/** The most points in one statement's result, which is all that is ever in memory. */
const blockPoints = 20_000;
/** The most series that one statement covers. */
const blockSeries = 500;

/** Whole milliseconds. A double of seconds is exact to the microsecond; the addend prevents rounding down. */
const ms = `floor(date_part('epoch', m.ts) * 1000 + 0.0005)::bigint`;
const value = `case when m.long = 'NaN' then m.val::text
                    else concat('{"lat":', m.val, ',"long":', m.long, '}') end`;

type Texts = { text: string; separator: string; vals: string };

/** SQL for a point's text. */
function textsOf({ format, hasArrival }: PointStyle): Texts {
  const orNull = (column: string) => `coalesce(m.${column}::text, 'null')`;
  const member = hasArrival
    ? `, ',"arrivedTs":', ${orNull('arrived')}, ',"nth":', ${orNull('nth')}`
    : '';
  const field = hasArrival ? `, ',', m.arrived, ',', m.nth` : '';
  const row = `concat(w.prefix, ${value}, ',"ts":', ${ms}${member}, '}')`;
  switch (format) {
    case 'json':
      return { text: row, separator: ',', vals: `''` };
    case 'ndjson':
      return { text: `${row} || chr(10)`, separator: '', vals: `''` };
    case 'csv':
      return {
        text: `concat(w.prefix, ${ms}, case when m.long = 'NaN' then concat(',', m.val, ',,')
                                            else concat(',,', m.val, ',', m.long) end${field}, chr(13), chr(10))`,
        separator: '',
        vals: `''`,
      };
    case 'columns':
      return { text: `${ms}::text`, separator: ',', vals: value };
  }
}

function prefixOf({ deviceAuthUuid, sId }: ExportSeries, format: PointFormat): string {
  if (format === 'csv') return `${deviceAuthUuid},${sId},`;
  return `{"deviceAuthUuid":"${deviceAuthUuid}","sId":"${sId}","val":`;
}

type BlockRow = { place: number; count: number; micros: string; text: string; vals: string };

/**
 * All points of some series, series by series, as text that the database writes: twice as fast as converting them row
 * by row.
 */
function walkPoints(
  sql: Sql,
  all: ExportSeries[],
  range: ExportRange,
  style: PointStyle,
): AsyncGenerator<PointBlock[]> {
  return walkSlices(all, blockSeries, async (slice, after: string | null) => {
    const rows = await readBlock(sql, slice, { ...range, after }, style);
    const blocks = rows.flatMap(({ place, text, vals }) => {
      const series = slice[place - 1];
      return series ? [{ series, text, vals }] : [];
    });
    const last = rows.at(-1);
    const count = rows.reduce((sum, { count: own }) => sum + own, 0);
    return {
      block: blocks.length > 0 ? blocks : null,
      stop: last && count === blockPoints ? { place: last.place, after: last.micros } : null,
    };
  });
}

async function readBlock(
  sql: Sql,
  slice: ExportSeries[],
  { start, end, order, after }: ExportRange & { after: string | null },
  style: PointStyle,
): Promise<BlockRow[]> {
  const { format, hasArrival } = style;
  const { text, separator, vals } = textsOf(style);
  const [beyond, newest] = order === 'asc' ? ['>', 'max'] : ['<', 'min'];
  const { rows } = await sql.query<BlockRow>({
    name: `export-points-${format}-${order}${hasArrival ? '-arrived' : ''}`,
    // If a block continues within a series, that series is the first of the slice.
    text: `
      select place::integer, count(*)::integer as count,
             (extract(epoch from ${newest}(ts)) * 1000000)::bigint::text as micros,
             string_agg(text, '${separator}' order by ts ${order}) as text,
             string_agg(vals, ',' order by ts ${order}) as vals
        from (
          select w.place, m.ts, ${text} as text, ${vals} as vals
            from unnest($1::bigint[], $2::text[]) with ordinality as w (series_id, prefix, place)
           cross join lateral (
             select ts, val, long${hasArrival ? ', arrived, nth' : ''}
               from measurement
              where series_id = w.series_id
                and ts >= ms_to_timestamp($3) and ts < ms_to_timestamp($4::bigint + 1)
                and ($5::bigint is null or w.place > 1
                     or ts ${beyond} timestamptz 'epoch' + $5 * interval '1 microsecond')
              order by ts ${order}
              limit ${blockPoints}) m
           limit ${blockPoints}) block
       group by place
       order by place`,
    values: [
      slice.map(({ seriesId }) => seriesId),
      slice.map((series) => prefixOf(series, format)),
      start,
      end,
      after,
    ],
  });
  return rows;
}

/** As the database wrote them. */
const pointItems = (block: PointBlock[]) => block.map(({ text }) => text).join(',');
const pointLines = (block: PointBlock[]) => block.map(({ text }) => text).join('');

/** A series with many points is written in several pieces, one after the other. */
const seriesItems = (block: PointBlock[]) =>
  block
    .map(({ series: { deviceAuthUuid, sId }, text, vals }) => {
      return `{"deviceAuthUuid":"${deviceAuthUuid}","sId":"${sId}","ts":[${text}],"val":[${vals}]}`;
    })
    .join(',');

const headerOf = (hasArrival: boolean) =>
  `deviceAuthUuid,sId,ts,val,lat,long${hasArrival ? ',arrivedTs,nth' : ''}\r\n`;

const bucketItems = (rows: ExportBucket[]) => JSON.stringify(rows).slice(1, -1);

const bucketLines = (rows: ExportBucket[]) =>
  rows.map((row) => `${JSON.stringify(row)}\n`).join('');

const bucketHeader = (stats: readonly StatName[]) => `deviceAuthUuid,sId,ts,${stats.join(',')}\r\n`;

const bucketFields = (stats: readonly StatName[]) => (rows: ExportBucket[]) =>
  rows
    .map(({ deviceAuthUuid, sId, ts, ...values }) =>
      [deviceAuthUuid, sId, ts, ...stats.map((stat) => values[stat])].join(',').concat('\r\n'),
    )
    .join('');

type BucketsWanted = { width: BucketWidth; tz: string; stats: readonly StatName[] };

type ExportBucket = { deviceAuthUuid: string; sId: string; ts: number } & Partial<
  Record<StatName, number>
>;

/** The most buckets of one series in one statement's result. */
const blockBuckets = 10_000;

/** As PostgreSQL calls them. */
const unitNames = { s: 'second', m: 'minute', h: 'hour', d: 'day', mo: 'month' };

const first = '(array_agg(val order by ts))[1]';
export const last = '(array_agg(val order by ts desc))[1]';
// Clamped, because two values near the limit of a double would overflow the sum and make the request fail.
const sum = 'sum(greatest(least(val, 1e290), -1e290))';
const expressions: Record<StatName, string> = {
  min: 'min(val)',
  max: 'max(val)',
  // Kept between min and max, which rounding could exceed, as in buckets of a single device.
  avg: `least(greatest(${sum} / count(*), min(val)), max(val))`,
  sum,
  count: 'count(*)::integer',
  first,
  last,
  delta: `greatest(least(${last} - ${first}, 1.7976931348623157e308), -1.7976931348623157e308)`,
};

/**
 * All buckets of some series, series by series, without positions. Each statement covers as many buckets as it may
 * return, beginning with the first point, so empty stretches are skipped.
 */
async function* walkExportBuckets(
  sql: Sql,
  all: ExportSeries[],
  range: ExportRange,
  wanted: BucketsWanted,
): AsyncGenerator<ExportBucket[]> {
  for (const series of all) {
    let left: ExportRange | null = range;
    while (left) {
      const part = await findPart(sql, series.seriesId, left, wanted.width, wanted.tz);
      if (!part) break;
      const rows = await readBuckets(sql, series, part, wanted);
      if (rows.length > 0) yield rows;
      left = restOf(left, part);
    }
  }
}

function restOf(range: ExportRange, part: ExportRange): ExportRange | null {
  const rest =
    range.order === 'asc' ? { ...range, start: part.end + 1 } : { ...range, end: part.start - 1 };
  return rest.start <= rest.end ? rest : null;
}

/** What the next statement covers: whole buckets, except where the range ends. Null: there are no more points. */
async function findPart(
  sql: Sql,
  seriesId: number,
  range: ExportRange,
  width: BucketWidth,
  tz: string,
): Promise<ExportRange | null> {
  const edge = await findEdge(sql, seriesId, range);
  if (edge === null) return null;
  // Ten thousand wide buckets would exceed what a timestamp can hold.
  const spanMs = Math.min(width.count * unitMs[width.unit] * blockBuckets, widestBucketMs);
  const [lowest, highest] = range.order === 'asc' ? [edge, edge + spanMs] : [edge - spanMs, edge];
  const { rows } = await sql.query<{ lower: number; upper: number }>(
    `select ${boundOf('ms_to_timestamp($1)', width.unit, 0)} as lower,
            ${boundOf('ms_to_timestamp($2)', width.unit, 1)} as upper`,
    [Math.max(0, lowest), Math.min(highest, range.end), width.count, tz],
  );
  const { lower = range.start, upper = range.end + 1 } = rows[0] ?? {};
  return {
    order: range.order,
    start: Math.max(range.start, lower),
    end: Math.min(range.end, upper - 1),
  };
}

/** The time in ms of the first point in the requested order. */
async function findEdge(
  sql: Sql,
  seriesId: number,
  { start, end, order }: ExportRange,
): Promise<number | null> {
  const { rows } = await sql.query<{ ts: number }>({
    name: `export-edge-${order}`,
    text: `
      select ts from measurement
       where series_id = $1 and ts >= ms_to_timestamp($2) and ts < ms_to_timestamp($3::bigint + 1)
       order by ts ${order} limit 1`,
    values: [seriesId, start, end],
  });
  return rows[0]?.ts ?? null;
}

/**
 * SQL for the beginning of a time's bucket, or with 1 of the next bucket. A bucket is `$3` units wide, in time zone
 * `$4`, counted from 1970.
 */
export function boundOf(ts: string, unit: BucketWidth['unit'], next: 0 | 1): string {
  return instantOf(`(${keyOf(ts, unit)} + ${next} * ${widthOf(unit)})`, unit);
}

const widthOf = (unit: BucketWidth['unit']) => `($3::float8 * interval '1 ${unitNames[unit]}')`;

/**
 * SQL for a bucket's key. For days and months: its beginning by the local clock. For hours and less: its beginning in
 * UTC, by the offset at that moment, because an hour that a clock repeats is two hours.
 */
export function keyOf(ts: string, unit: BucketWidth['unit']): string {
  const local = `(${ts} at time zone $4::text)`;
  if (unit === 'mo') {
    const months = `((extract(year from ${local}) - 1970) * 12 + extract(month from ${local}) - 1)`;
    return `(timestamp '1970-01-01' + floor(${months} / $3::integer)::integer * ${widthOf(unit)})`;
  }
  const begin = `date_bin(${widthOf(unit)}, ${local}, timestamp '1970-01-01')`;
  if (unit === 'd') return begin;
  return `(${begin} - (${local} - (${ts} at time zone 'UTC')))`;
}

/**
 * SQL for the instant that a key stands for. If the local clock shows midnight twice, the day begins at the first
 * one, which the offset of the day before gives; PostgreSQL would take the second.
 */
export function instantOf(key: string, unit: BucketWidth['unit']): string {
  if (unit !== 'd' && unit !== 'mo') return `(${key} at time zone 'UTC')`;
  const known = `(${key} at time zone $4::text)`;
  const dayBefore = `(${known} - interval '24 hours')`;
  const offset = `((${dayBefore} at time zone $4::text) - (${dayBefore} at time zone 'UTC'))`;
  const earlier = `((${key} - ${offset}) at time zone 'UTC')`;
  return `(case when (${earlier} at time zone $4::text) = ${key} then least(${earlier}, ${known}) else ${known} end)`;
}

async function readBuckets(
  sql: Sql,
  { seriesId, deviceAuthUuid, sId }: ExportSeries,
  { start, end, order }: ExportRange,
  { width, tz, stats }: BucketsWanted,
): Promise<ExportBucket[]> {
  const columns = stats.map((stat) => `${expressions[stat]} as "${stat}"`).join(', ');
  const { rows } = await sql.query<Omit<ExportBucket, 'deviceAuthUuid' | 'sId'>>(
    `
      select ${instantOf('key', width.unit)} as ts, ${columns}
        from (
          select ${keyOf('m.ts', width.unit)} as key, m.ts, m.val
            from measurement m
           where m.series_id = $5 and m.long = 'NaN'
             and m.ts >= ms_to_timestamp($1) and m.ts < ms_to_timestamp($2::bigint + 1)) points
       group by key
       order by key ${order}`,
    [start, end, width.count, tz, seriesId],
  );
  return rows.map((row) => ({ deviceAuthUuid, sId, ...row }));
}
