import type { QueryConfig } from 'pg';
import type { Sql } from '../db/sql.ts';
import type { SelectedDevice } from '../devices/select.ts';
import type { HistoryKind } from '../history/retention.ts';
import { boundOf, instantOf, keyOf, last as newest } from './export.ts';
import {
  type BucketView,
  type BucketWidth,
  type LatestView,
  type MeasurementCursor,
  type MeasurementView,
  unitMs,
} from './schema.ts';

/** A sense that ever had a value, and the series that holds its values. */
type MeasuredSense = { seriesId: number; sId: string };

/** All senses that ever had a value, or those of `wanted` that did, ordered by identifier. */
export async function listMeasuredSenses(
  sql: Sql,
  deviceId: number,
  wanted?: string[],
): Promise<MeasuredSense[]> {
  const { rows } = await sql.query<MeasuredSense>({
    name: 'list-measured-senses',
    text: `
      select id as "seriesId", s_id as "sId"
        from series
       where device_id = $1 and ($2::text[] is null or s_id = any($2))
       order by s_id`,
    values: [deviceId, wanted],
  });
  return rows;
}

/** The values of some senses of a device. Times in ms, inclusive. */
export type MeasurementRange = { senses: MeasuredSense[]; start: number; end: number };

type PointRow = {
  s_id: string;
  ts: number;
  micros: number;
  val: number;
  long: number;
};

/** For this many senses it reads a full page of each at once, because a second statement would take longer. */
const fewSenses = 4;

/**
 * At most `limit` points after `after`, newest first. `nowTs`: most points are about as old as that or older. A page of
 * many senses comes from the newest times first, because each sense is looked up in each chunk of a range.
 */
export async function listMeasurements(
  sql: Sql,
  range: MeasurementRange,
  limit: number,
  nowTs: number,
  after?: MeasurementCursor,
): Promise<PointRow[]> {
  if (range.senses.length <= fewSenses) return listNewest(sql, range, limit, after);
  const found: PointRow[] = [];
  for (const span of spansBack(range, after?.[0] ?? nowTs)) {
    found.push(...(await listNewest(sql, { ...range, ...span }, limit - found.length, after)));
    if (found.length === limit) break;
  }
  return found;
}

/**
 * Parts of a range, newest first: the first begins a day before `nowTs`, and each is four times as long as the one
 * before, so that what is recent is found in few chunks, and what is old in few parts. Times in ms, inclusive.
 */
function* spansBack(
  { start, end }: { start: number; end: number },
  nowTs: number,
): Generator<{ start: number; end: number }> {
  let left = end;
  for (let lengthMs = dayMs; left >= start; lengthMs *= 4) {
    const from = Math.max(start, Math.min(left, nowTs) - lengthMs);
    yield { start: from, end: left };
    left = from - 1;
  }
}

/**
 * If there are many senses, a few points of each show where the page ends. So it reads some pages and an index entry
 * per sense, not a page per sense.
 */
async function listNewest(
  sql: Sql,
  range: MeasurementRange,
  limit: number,
  after: MeasurementCursor | undefined,
): Promise<PointRow[]> {
  const read = async (from: MeasurementRange, ofEach: number) =>
    (await sql.query<PointRow>(listMeasurementsQuery(from, limit, after, ofEach))).rows;
  const count = range.senses.length;
  if (count <= fewSenses) return read(range, limit);
  for (let ofEach = Math.ceil(limit / count); ofEach < limit; ofEach *= 4) {
    const newest = await read(range, ofEach);
    const last = newest.at(-1);
    // This many points are no older than the last one, so no older point belongs to the page.
    if (last && newest.length === limit) return read({ ...range, start: last.ts }, limit);
    const bySense = Map.groupBy(newest, ({ s_id }) => s_id);
    if ([...bySense.values()].every(({ length }) => length < ofEach)) return newest;
  }
  return read(range, limit);
}

/**
 * Reads each sense newest first from its own range of the index, at most `ofEach` points. The order is (ts, sense).
 * So after a cursor, senses before the cursor's continue at its time, that sense and later ones below it.
 */
function listMeasurementsQuery(
  { senses, start, end }: MeasurementRange,
  limit: number,
  after?: MeasurementCursor,
  ofEach = limit,
): QueryConfig {
  const [ts, micros, sId] = after ?? [end + 1, 0, ''];
  // For few senses the bounds come from a sub-select, so that the plan over all chunks is made once: planning each
  // query anew must never look cheaper. But then TimescaleDB compares them with each chunk for each sense, which takes
  // eight times as long as a look into the chunk's index. For many senses it compares parameters, and once.
  const isFew = senses.length <= fewSenses;
  const [firstTs, endTs] = isFew
    ? ['asked.first_ts', 'asked.end_ts']
    : ['ms_to_timestamp($3)', 'ms_to_timestamp($4::bigint + 1)'];
  return {
    name: isFew ? 'list-measurements' : 'list-measurements-of-many',
    text: `
      select wanted.s_id, found.ts, found.micros, found.val, found.long
        from (select $1::bigint[] as series_ids, $2::text[] as s_ids,
                     ms_to_timestamp($3) as first_ts, ms_to_timestamp($4::bigint + 1) as end_ts,
                     ms_to_timestamp($5) + $6::integer * interval '1 microsecond' as after_ts,
                     $7::text as after_s_id
              offset 0) asked
       cross join unnest(asked.series_ids, asked.s_ids) as wanted (series_id, s_id)
       cross join lateral (
         select m.ts, (extract(microseconds from m.ts)::bigint % 1000)::integer as micros, m.val, m.long
           from measurement m
          where m.series_id = wanted.series_id
            and m.ts >= ${firstTs} and m.ts < ${endTs}
            and m.ts < case when wanted.s_id < asked.after_s_id collate "C"
                            then asked.after_ts + interval '1 microsecond'
                            else asked.after_ts end
          order by m.ts desc
          limit $9) found
       order by found.ts desc, wanted.s_id collate "C" desc
       limit $8`,
    values: [
      senses.map(({ seriesId }) => seriesId),
      senses.map((sense) => sense.sId),
      start,
      Math.min(end, ts),
      ts,
      micros,
      sId,
      limit,
      ofEach,
    ],
  };
}

/**
 * The time in ms of the newest number or position in a range; null if it has none. `nowTs` as in `listMeasurements`.
 */
async function findNewest(
  sql: Sql,
  range: MeasurementRange,
  nowTs: number,
): Promise<number | null> {
  for (const { start, end } of spansBack(range, nowTs)) {
    const { rows } = await sql.query<{ newest: number | null }>({
      name: 'find-newest-measurement',
      text: `
        select max(newest.ts) as newest
          from unnest($1::bigint[]) as wanted (series_id)
         cross join lateral (
           select m.ts
             from measurement m
            where m.series_id = wanted.series_id
              and m.ts >= ms_to_timestamp($2) and m.ts < ms_to_timestamp($3::bigint + 1)
            order by m.ts desc
            limit 1) newest`,
      values: [range.senses.map(({ seriesId }) => seriesId), start, end],
    });
    const newest = rows[0]?.newest;
    if (typeof newest === 'number') return newest;
  }
  return null;
}

/** For a number, `long` is NaN in the table. */
export function toMeasurementView({
  s_id,
  ts,
  val,
  long,
}: Omit<PointRow, 'micros'>): MeasurementView {
  return { sId: s_id, val: Number.isNaN(long) ? val : { lat: val, long }, ts };
}

export function toCursor({ ts, micros, s_id }: PointRow): MeasurementCursor {
  return [ts, micros, s_id];
}

/** What one statement covers of a list of buckets. */
type BucketWindow = MeasurementRange & {
  widthMs: number;
  /** Only buckets that come after this one in the list. */
  after?: { ts: number; sId: string } | undefined;
  limit: number;
};

type BucketRow = {
  s_id: string;
  ts: number;
  min: number;
  max: number;
  sum: number;
  count: number;
  last: number;
};

/** Buckets of the points between `start` and `end`, newest first, with each bucket's senses in order. */
async function listBuckets(
  sql: Sql,
  source: HistoryKind | 'hours',
  window: BucketWindow,
): Promise<BucketRow[]> {
  const { rows } = await sql.query<BucketRow>(listBucketsQuery(source, window));
  return rows;
}

/** `hours`: from the aggregate, and from the points themselves where the first or last hour is not whole. */
function listBucketsQuery(source: HistoryKind | 'hours', window: BucketWindow): QueryConfig {
  const { senses, start, end, widthMs, after, limit } = window;
  const ids = senses.map(({ seriesId }) => seriesId);
  const names = senses.map(({ sId }) => sId);
  const values = [ids, names, start, end, widthMs, after?.ts, after?.sId, limit];
  switch (source) {
    case 'plain':
      return { name: 'buckets-plain', text: plain, values };
    case 'timescaledb':
      return { name: 'buckets-points', text: fromPoints, values };
    case 'hours': {
      const firstHour = Math.ceil(start / hourMs) * hourMs;
      const lastHour = Math.floor((end + 1) / hourMs) * hourMs;
      return { name: 'buckets-hours', text: fromHours, values: [...values, firstHour, lastHour] };
    }
  }
}

const hourMs = 3_600_000;

const bucket = (column: string) =>
  `date_bin($5::float8 * interval '1 millisecond', ${column}, timestamptz 'epoch')`;

const kept = `m.series_id = any($1::bigint[]) and m.long = 'NaN'`;
const within = 'm.ts >= ms_to_timestamp($3) and m.ts < ms_to_timestamp($4::bigint + 1)';

// Clamped, because two values near the limit of a double would overflow the sum and make the request fail.
const summable = 'greatest(least(m.val, 1e290), -1e290)';

const page = `
  select wanted.s_id, bucket.*
    from bucket
    join unnest($1::bigint[], $2::text[]) as wanted (series_id, s_id) using (series_id)
   where ($6::bigint is null or ts < ms_to_timestamp($6) or wanted.s_id > $7::text collate "C")
   order by ts desc, wanted.s_id collate "C"
   limit $8`;

const fromPoints = `
  with bucket as (
    select m.series_id, ${bucket('m.ts')} as ts, min(m.val), max(m.val), sum(${summable}),
           count(*), last(m.val, m.ts)
      from measurement m
     where ${kept} and ${within}
     group by 1, 2)
  ${page}`;

// Finds a bucket's newest value by its key.
const plain = `
  with bucket as (
    select m.series_id, ${bucket('m.ts')} as ts, min(m.val), max(m.val), sum(${summable}),
           count(*), max(m.ts) as last_ts
      from measurement m
     where ${kept} and ${within}
     group by 1, 2),
  listed as (${page})
  select listed.*, m.val as last
    from listed
    join measurement m on m.series_id = listed.series_id and m.ts = listed.last_ts
   order by listed.ts desc, listed.s_id collate "C"`;

const edgeOf = (from: string, until: string) => `
  select m.series_id, m.ts, m.val, m.val, ${summable}, 1, m.val
    from measurement m
   where ${kept} and m.ts >= ${from} and m.ts < ${until}`;

const fromHours = `
  with part (series_id, ts, min, max, sum, count, last) as (
    select h.series_id, h.bucket, h.min, h.max, h.sum, h.count, h.last
      from measurement_hour h
     where h.series_id = any($1::bigint[])
       and h.bucket >= ms_to_timestamp($9) and h.bucket < ms_to_timestamp($10)
     union all ${edgeOf('ms_to_timestamp($3)', 'ms_to_timestamp($9)')}
     union all ${edgeOf('ms_to_timestamp($10)', 'ms_to_timestamp($4::bigint + 1)')}),
  bucket as (
    select series_id, ${bucket('ts')} as ts, min(min), max(max), sum(sum),
           sum(count)::bigint as count, last(last, ts)
      from part
     group by 1, 2)
  ${page}`;

/** All buckets of the points between `start` and `end`, newest first, by the clock of a time zone. */
async function listLocalBuckets(
  sql: Sql,
  { senses, start, end }: MeasurementRange,
  { count, unit }: BucketWidth,
  tz: string,
): Promise<BucketRow[]> {
  const { rows } = await sql.query<BucketRow>(
    `select s_id, ${instantOf('key', unit)} as ts, min(val), max(val), sum(${summable.replace('m.val', 'val')}),
            count(*), ${newest} as last
       from (select wanted.s_id, ${keyOf('m.ts', unit)} as key, m.ts, m.val
               from unnest($5::bigint[], $6::text[]) as wanted (series_id, s_id)
               join measurement m using (series_id)
              where m.long = 'NaN'
                and m.ts >= ms_to_timestamp($1) and m.ts < ms_to_timestamp($2::bigint + 1)) points
      group by s_id, key
      order by key desc, s_id collate "C"`,
    [start, end, count, tz, senses.map(({ seriesId }) => seriesId), senses.map(({ sId }) => sId)],
  );
  return rows;
}

/** When the bucket of a time begins, in ms. */
async function findBucketStart(
  sql: Sql,
  ts: number,
  { count, unit }: BucketWidth,
  tz: string,
): Promise<number> {
  const { rows } = await sql.query<{ start: number }>(
    // The expression expects the width as $3 and the time zone as $4.
    `select ${boundOf('ms_to_timestamp($1)', unit, 0)} as start, $2::text`,
    [ts, '', count, tz],
  );
  return rows[0]?.start ?? ts;
}

/** The mean is kept between min and max, which rounding could exceed. */
function toBucketView({ s_id, ts, min, max, sum, count, last }: BucketRow): BucketView {
  const avg = Math.min(max, Math.max(min, sum / count));
  return { sId: s_id, ts, min, max, avg, count, last };
}

type SenseWords = Pick<LatestView, 'name' | 'unit' | 'decimals'>;

type Row = {
  device_id: number;
  s_id: string;
  name: string | null;
  unit: string | null;
  decimals: number | null;
};

/** Names, units and decimals of these devices' senses, by "deviceId sId"; without senses that have none of these. */
async function describeSenses(
  sql: Sql,
  deviceIds: number[],
  senses: string[] | undefined,
): Promise<Map<string, SenseWords>> {
  const { rows } = await sql.query<Row>({
    name: 'describe-senses',
    text: `
      select d.id as device_id, sense ->> 'sId' as s_id, sense ->> 'name' as name,
             sense ->> 'unit' as unit, (sense ->> 'decimals')::int as decimals
        from device d
       cross join lateral json_array_elements(d.configuration -> 'module') module
       cross join lateral json_array_elements(module -> 'senses') sense
       where d.id = any($1::bigint[])
         and ($2::text[] is null or sense ->> 'sId' = any($2))
         and coalesce(sense ->> 'name', sense ->> 'unit', sense ->> 'decimals') is not null`,
    values: [deviceIds, senses],
  });
  return new Map(rows.map((row) => [`${row.device_id} ${row.s_id}`, toWords(row)]));
}

const toWords = ({ name, unit, decimals }: Row): SenseWords => ({
  name: name ?? undefined,
  unit: unit ?? undefined,
  decimals: decimals ?? undefined,
});

type LatestRow = {
  device_id: number;
  s_id: string;
  ts: number;
  val: number;
  long: number;
  before_ts: number | null;
};

type LimitRow = { device_id: number; s_id: string; above: number | null; below: number | null };

/**
 * The plain limits of devices' current profiles, as common table expressions: of events that open an alarm and have one
 * cause, which compares a single value with one number. Each profile is read once, however many devices have it.
 * `which`: a condition on `device_id`.
 */
const plainLimits = (which: string) => `
      running as materialized (
        select d.device_id, p.content_id
          from device_profile d
          join profile p on p.id = d.profile_id
         where ${which} and d.state = 'current'
      ), limits as (
        select c.id as content_id, l."sId" as s_id, min(l.above) as above, max(l.below) as below
          from profile_content c
         cross join lateral json_to_recordset(c.limits) as l ("sId" text, above float8, below float8)
         where c.id in (select content_id from running)
         group by 1, 2
      )`;

/** The limits of these devices' current profiles, by "deviceId sId". */
async function readLimits(
  sql: Sql,
  deviceIds: number[],
): Promise<Map<string, Pick<LatestView, 'above' | 'below'>>> {
  const { rows } = await sql.query<LimitRow>({
    name: 'plain-limits',
    text: `
      with ${plainLimits('d.device_id = any($1::bigint[])')}
      select r.device_id, l.s_id, l.above, l.below
        from running r
        join limits l using (content_id)
       where l.above is not null or l.below is not null`,
    values: [deviceIds],
  });
  return new Map(
    rows.map(({ device_id, s_id, above, below }) => [
      `${device_id} ${s_id}`,
      { above: above ?? undefined, below: below ?? undefined },
    ]),
  );
}

/** Devices of an account that have one of the labels (null: all of them). */
type Fleet = { accountId: number; labels: readonly string[] | null };

const ofFleet = `account_id = $1 and ($2::text[] is null or labels && $2)`;

/** A series' newest number; none if it has a position. */
const newestNumber = `
       cross join lateral (
         select m.val, m.long from measurement m where m.series_id = s.id order by m.ts desc limit 1) n`;

/**
 * The devices whose newest value of a sense is greater, or less, than a number (`value`), and those of which one is
 * beyond a plain limit of the current profile, or none (`beyond`). `values`: the newest number of a sense, to sort by.
 * It looks up one value of each series in question.
 */
export async function findByValues(
  sql: Sql,
  {
    accountId,
    labels,
    value,
    beyond,
    sort,
  }: Fleet & {
    value?: { sId: string; isGreater: boolean; number: number } | undefined;
    beyond?: boolean | undefined;
    sort?: { sId?: string } | undefined;
  },
): Promise<{ in: number[] | null; notIn: number[] | null; values?: NewestNumber[] }> {
  const of = { accountId, labels };
  const values =
    sort?.sId === undefined ? {} : { values: await listNewestNumbers(sql, of, sort.sId) };
  const fitting = value ? await findByValue(sql, of, value) : null;
  if (beyond === undefined) return { ...values, in: fitting, notIn: null };
  const found = await findBeyond(sql, of);
  if (!beyond) return { ...values, in: fitting, notIn: found };
  const isBeyond = new Set(found);
  return { ...values, in: fitting ? fitting.filter((id) => isBeyond.has(id)) : found, notIn: null };
}

type NewestNumber = { id: number; val: number };

async function listNewestNumbers(
  sql: Sql,
  { accountId, labels }: Fleet,
  sId: string,
): Promise<NewestNumber[]> {
  const { rows } = await sql.query<NewestNumber>({
    name: 'devices-newest-numbers',
    text: `
      select s.device_id as id, n.val
        from device d
        join series s on s.device_id = d.id and s.s_id = $3 ${newestNumber}
       where ${ofFleet} and n.long = 'NaN'`,
    values: [accountId, labels, sId],
  });
  return rows;
}

async function findByValue(
  sql: Sql,
  { accountId, labels }: Fleet,
  { sId, isGreater, number }: { sId: string; isGreater: boolean; number: number },
): Promise<number[]> {
  const { rows } = await sql.query<{ id: number }>({
    name: isGreater ? 'devices-above' : 'devices-below',
    text: `
      select s.device_id as id
        from device d
        join series s on s.device_id = d.id and s.s_id = $3 ${newestNumber}
       where ${ofFleet} and n.long = 'NaN' and n.val ${isGreater ? '>' : '<'} $4`,
    values: [accountId, labels, sId, number],
  });
  return rows.map(({ id }) => id);
}

async function findBeyond(sql: Sql, { accountId, labels }: Fleet): Promise<number[]> {
  const { rows } = await sql.query<{ id: number }>({
    name: 'devices-beyond',
    text: `
      with ${plainLimits(`d.device_id in (select id from device where ${ofFleet})`)}
      select distinct r.device_id as id
        from running r
        join limits l using (content_id)
        join series s on s.device_id = r.device_id and s.s_id = l.s_id ${newestNumber}
       where n.long = 'NaN' and (n.val > l.above or n.val < l.below)`,
    values: [accountId, labels],
  });
  return rows.map(({ id }) => id);
}

/** The newest measurement of each sense of these devices that ever had a value, by device and sense. */
export async function listLatest(
  sql: Sql,
  devices: SelectedDevice[],
  senses: string[] | undefined,
  { isDescribed = false } = {},
): Promise<LatestView[]> {
  if (devices.length === 0) return [];
  const ids = devices.map(({ id }) => id);
  const [{ rows }, described, limits] = await Promise.all([
    sql.query<LatestRow>(latestQuery(ids, senses, { isDescribed })),
    isDescribed ? describeSenses(sql, ids, senses) : null,
    isDescribed ? readLimits(sql, ids) : null,
  ]);
  const uuids = new Map(devices.map(({ id, uuid }) => [id, uuid]));
  return rows.map((row) => ({
    deviceAuthUuid: uuids.get(row.device_id) ?? '',
    ...toMeasurementView(row),
    ...described?.get(`${row.device_id} ${row.s_id}`),
    ...limits?.get(`${row.device_id} ${row.s_id}`),
    ...(row.before_ts === null ? {} : { beforeTs: row.before_ts }),
  }));
}

/**
 * Reads the index backwards from the newest chunk; a series is done with its first row, or with the time of its second
 * one (`isDescribed`).
 */
export function latestQuery(
  deviceIds: number[],
  senses: string[] | undefined,
  { isDescribed = false } = {},
): QueryConfig {
  const before = `
          left join lateral (
         select m.ts
           from measurement m
          where m.series_id = series.id and m.ts < newest.ts
          order by m.ts desc
          limit 1) before on true`;
  return {
    name: isDescribed ? 'list-latest-described' : 'list-latest',
    text: `
      select series.device_id, series.s_id, newest.ts, newest.val, newest.long,
             ${isDescribed ? 'before.ts' : 'null::timestamptz'} as before_ts
        from unnest($1::bigint[]) with ordinality as wanted (device_id, place)
        join series using (device_id)
       cross join lateral (
         select m.ts, m.val, m.long
           from measurement m
          where m.series_id = series.id
          order by m.ts desc
          limit 1) newest ${isDescribed ? before : ''}
       where $2::text[] is null or series.s_id = any($2)
       order by wanted.place, series.s_id`,
    values: [deviceIds, senses],
  };
}

const dayMs = 24 * hourMs;
const weekMs = 7 * dayMs;

/** The most rows in one statement's result, which is all that is ever in memory. */
const maxRows = 1_000;

/** How much time one statement aggregates points of, so that none runs long. */
const maxPointsSpanMs = 4 * weekMs;

/**
 * Yields all buckets of a range, newest first, about a thousand at a time. However slowly they are read, no more is
 * in memory and no transaction stays open. `tz`: whose days and months the buckets follow. `nowTs` as in
 * `listMeasurements`.
 */
export function walkBuckets(
  sql: Sql,
  kind: HistoryKind,
  range: MeasurementRange,
  { width, tz, nowTs }: { width: BucketWidth; tz: string; nowTs: number },
): AsyncGenerator<BucketView[]> {
  return tz === 'UTC' && width.unit !== 'mo'
    ? walkEvenBuckets(sql, kind, range, width.count * unitMs[width.unit], nowTs)
    : walkLocalBuckets(sql, range, width, tz, nowTs);
}

/** Buckets of equal length. Long ranges in whole hours come from the hourly aggregate, if there is one. */
async function* walkEvenBuckets(
  sql: Sql,
  kind: HistoryKind,
  range: MeasurementRange,
  widthMs: number,
  nowTs: number,
): AsyncGenerator<BucketView[]> {
  const { start } = range;
  const newestTo = (end: number) => findNewest(sql, { ...range, end }, nowTs);
  let end = await newestTo(range.end);
  if (end === null) return;
  const hours =
    kind === 'timescaledb' && widthMs % hourMs === 0 && (await newestTo(end - weekMs - 1)) !== null;
  const source = hours ? 'hours' : kind;
  const maxSpan = hours ? Infinity : Math.max(1, Math.floor(maxPointsSpanMs / widthMs));

  // How many buckets the next statement covers: more where rows are sparse, fewer where they are dense.
  let span = Math.max(1, Math.floor(maxRows / 2 / range.senses.length));
  let after: { ts: number; sId: string } | undefined;
  while (end !== null && end >= start) {
    span = Math.min(span, maxSpan);
    const from = Math.max(start, Math.floor(end / widthMs) * widthMs - (span - 1) * widthMs);
    const window = { ...range, start: from, end, widthMs, after, limit: maxRows };
    const rows = await listBuckets(sql, source, window);
    if (rows.length > 0) yield rows.map(toBucketView);
    const last = rows.at(-1);
    if (last && rows.length === maxRows) {
      after = { ts: last.ts, sId: last.s_id };
      end = Math.min(end, last.ts + widthMs - 1);
      span = Math.max(1, Math.floor(bucketsIn(rows, widthMs) / 2));
    } else {
      after = undefined;
      if (rows.length < maxRows / 4) span *= 4;
      // Skips what is empty.
      end = rows.length === 0 ? await newestTo(from - 1) : from - 1;
    }
  }
}

/** Days of 23, 24 and 25 hours, and months: PostgreSQL knows when they begin. */
async function* walkLocalBuckets(
  sql: Sql,
  range: MeasurementRange,
  width: BucketWidth,
  tz: string,
  nowTs: number,
): AsyncGenerator<BucketView[]> {
  const widthMs = width.count * unitMs[width.unit];
  // As many buckets as a statement may return, within the time that one may cover.
  const spanMs = Math.min(
    Math.max(1, Math.floor(maxRows / Math.max(1, range.senses.length))) * widthMs,
    Math.max(widthMs, maxPointsSpanMs),
  );
  let left: MeasurementRange = range;
  for (;;) {
    // Skips what is empty.
    const end = await findNewest(sql, left, nowTs);
    if (end === null) return;
    const begin = await findBucketStart(sql, Math.max(0, end - spanMs + widthMs), width, tz);
    const start = Math.max(left.start, begin);
    const rows = await listLocalBuckets(sql, { ...range, start, end }, width, tz);
    if (rows.length > 0) yield rows.map(toBucketView);
    left = { ...range, end: start - 1 };
  }
}

function bucketsIn(rows: BucketRow[], widthMs: number): number {
  const first = rows[0]?.ts ?? 0;
  const last = rows.at(-1)?.ts ?? 0;
  return (first - last) / widthMs + 1;
}
