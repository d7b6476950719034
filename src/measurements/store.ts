import type { QueryConfig } from 'pg';
import { CopyRows, type Transaction } from '../db/database.ts';
import { plainArray, type Sql } from '../db/sql.ts';
import { type LastSeen, maxValues, type Newest } from '../engine/last-seen.ts';

/**
 * `ts` in ms. A position has its latitude in `val` and its longitude in `long`. `arrival` and `nth`: when it
 * counts as arrived, and its place there (migration 000041); null or absent: not known.
 */
type StoredMeasurement = {
  deviceId: number;
  sId: string;
  ts: number;
  val: number;
  long?: number | undefined;
  /** Shared by the rows of a message: a number of its own would be an object of its own. */
  arrival?: { readonly ts: number } | null;
  nth?: number | null;
};

/**
 * Stores a batch. A measurement that is stored already (same sense, time and value) is not stored again; another
 * value in the same millisecond is stored beside it. Returns those for which their millisecond has no place left.
 * `known` saves looking up series. `onAdded` is called for each new row. Call this or `addMeasurements` once per
 * transaction.
 */
export async function storeMeasurements<M extends StoredMeasurement>(
  tx: Sql,
  rows: readonly M[],
  known: KnownSeries = createKnownSeries(),
  onAdded?: (row: M) => void,
): Promise<M[]> {
  const { crowded } = await storeCounted(tx, rows, known, onAdded);
  return crowded;
}

/** Like `storeMeasurements`; also returns how many were new. */
export async function storeCounted<M extends StoredMeasurement>(
  tx: Sql,
  rows: readonly M[],
  known: KnownSeries = createKnownSeries(),
  onAdded?: (row: M) => void,
): Promise<{ added: number; crowded: M[] }> {
  if (rows.length === 0) return { added: 0, crowded: [] };
  const ids = recallSeries(rows, known) ?? (await findSeries(tx, rows, known));
  const points = rows.map((row, i) => toPoint(row, ids[i] as number));
  const tell = onAdded && (({ row }: (typeof points)[number]) => onAdded(row));
  const inserted = await insertPoints(tx, points, tell);
  if (inserted === points.length) return { added: inserted, crowded: [] };
  const missing = await listMissing(tx, points);
  if (missing.length === 0) return { added: inserted, crowded: [] };
  const { added, unplaced } = await placeBeside(tx, missing, tell);
  return { added: inserted + added, crowded: unplaced.map(({ row }) => row) };
}

/** Returns the measurements that are stored. Adds nothing, so it may precede the other functions in a transaction. */
export async function findStored<M extends StoredMeasurement>(
  tx: Sql,
  rows: readonly M[],
): Promise<M[]> {
  const ids = await lookUpSeries(tx, rows);
  const points = rows.flatMap((row, i) => {
    const seriesId = ids[i];
    return seriesId === undefined ? [] : [toPoint(row, seriesId)];
  });
  const there = points.length > 0 ? await listThere(tx, points) : [];
  return there.map(({ row }) => row);
}

const toPoint = <M extends StoredMeasurement>(row: M, seriesId: number) => {
  const { ts, val, long = NaN, arrival, nth = null } = row;
  return { row, seriesId, ts, micros: 0, val, long, arrivedTs: arrival?.ts ?? null, nth };
};

/**
 * Like `storeMeasurements`, for a batch whose milliseconds are expected to be free, at half the cost for the
 * database. Throws a `unique_violation` (23505) if one is taken; the transaction is then void.
 */
export async function addMeasurements(
  tx: Transaction,
  rows: readonly StoredMeasurement[],
  known: KnownSeries = createKnownSeries(),
): Promise<void> {
  if (rows.length === 0) return;
  const ids = recallSeries(rows, known) ?? (await findSeries(tx, rows, known));
  const copied = new CopyRows();
  for (const [i, { ts, val, long = NaN, arrival, nth }] of rows.entries()) {
    // The history stores no negative zero, and neither does JSON here.
    copied
      .row(6)
      .bigint(ids[i] as number)
      .timestamptz(ts)
      .float8(val + 0)
      .float8(long + 0);
    if (arrival) copied.bigint(arrival.ts);
    else copied.null();
    if (typeof nth === 'number') copied.smallint(nth);
    else copied.null();
  }
  await tx.copyIn(
    'copy measurement (series_id, ts, val, long, arrived, nth) from stdin (format binary)',
    copied.end(),
  );
}

/** A sense of a device. */
type Series = { deviceId: number; sId: string };

/** Remembers the ids of series that are in the database, within a limit. */
export type KnownSeries = {
  get(series: Series): number | undefined;
  set(series: Series, id: number): void;
  clear(): void;
};

/** Cleared when full. A series that is not remembered costs a query, nothing more. */
export function createKnownSeries(maxSeries: number = 200_000): KnownSeries {
  const devices = new Map<number, Map<string, number>>();
  let size = 0;
  const clear = () => {
    devices.clear();
    size = 0;
  };
  return {
    get: ({ deviceId, sId }) => devices.get(deviceId)?.get(sId),
    set({ deviceId, sId }, id) {
      if (size >= maxSeries) clear();
      const senses = devices.get(deviceId) ?? new Map<string, number>();
      if (!senses.has(sId)) size += 1;
      devices.set(deviceId, senses.set(sId, id));
    },
    clear,
  };
}

type SeriesRow = { id: number; device_id: number; s_id: string };

/** The ids of all these series, in their order; undefined if one of them is not remembered. */
function recallSeries(wanted: readonly Series[], known: KnownSeries): number[] | undefined {
  const ids: number[] = [];
  for (const series of wanted) {
    const id = known.get(series);
    if (id === undefined) return undefined;
    ids.push(id);
  }
  return ids;
}

/**
 * Like `recallSeries`, for series that may be new: looks up those that are not remembered, and adds those that do not
 * exist. Call it once per transaction. It remembers what it finds, but not what it adds, which may be rolled back.
 */
async function findSeries(
  tx: Sql,
  wanted: readonly Series[],
  known: KnownSeries,
): Promise<number[]> {
  const ids = new Map<string, number>();
  const unknown = new Map<string, Series>();
  for (const series of wanted) {
    const id = known.get(series);
    if (id === undefined) unknown.set(nameOf(series), series);
    else ids.set(nameOf(series), id);
  }
  for (const row of await selectSeries(tx, [...unknown.values()])) {
    const series = { deviceId: row.device_id, sId: row.s_id };
    known.set(series, row.id);
    ids.set(nameOf(series), row.id);
    unknown.delete(nameOf(series));
  }
  for (const row of await insertSeries(tx, [...unknown.values()])) {
    ids.set(nameOf({ deviceId: row.device_id, sId: row.s_id }), row.id);
  }
  return wanted.map((series) => ids.get(nameOf(series)) as number);
}

/** The ids of these series, in their order; undefined for those that do not exist. Adds and remembers nothing. */
async function lookUpSeries(tx: Sql, wanted: readonly Series[]): Promise<(number | undefined)[]> {
  const unique = new Map(wanted.map((series) => [nameOf(series), series]));
  const rows = await selectSeries(tx, [...unique.values()]);
  const ids = new Map(
    rows.map(({ id, device_id: deviceId, s_id: sId }) => [nameOf({ deviceId, sId }), id]),
  );
  return wanted.map((series) => ids.get(nameOf(series)));
}

const nameOf = ({ deviceId, sId }: Series) => `${deviceId} ${sId}`;

async function selectSeries(tx: Sql, wanted: Series[]): Promise<SeriesRow[]> {
  if (wanted.length === 0) return [];
  const { rows } = await tx.query<SeriesRow>({
    name: 'select-series',
    text: `
      select id, device_id, s_id
        from unnest($1::bigint[], $2::text[]) as wanted (device_id, s_id)
        join series using (device_id, s_id)`,
    values: [wanted.map(({ deviceId }) => deviceId), wanted.map(({ sId }) => sId)],
  });
  return rows;
}

async function insertSeries(tx: Sql, wanted: Series[]): Promise<SeriesRow[]> {
  if (wanted.length === 0) return [];
  const { rows } = await tx.query<SeriesRow>({
    name: 'insert-series',
    // Ordered, so that two transactions that add the same series cannot deadlock. The update also returns series that
    // another transaction has added since the look-up.
    text: `
      insert into series (device_id, s_id)
      select device_id, s_id
        from unnest($1::bigint[], $2::text[]) as m (device_id, s_id)
       order by device_id, s_id
          on conflict (device_id, s_id) do update set s_id = excluded.s_id
      returning id, device_id, s_id`,
    values: [wanted.map(({ deviceId }) => deviceId), wanted.map(({ sId }) => sId)],
  });
  return rows;
}

/** A row of the history. `ts` in ms; `micros` (0 to 999) distinguishes values of the same millisecond. */
type Point = {
  seriesId: number;
  ts: number;
  micros: number;
  val: number;
  long: number;
  arrivedTs: number | null;
  nth: number | null;
};

/** How many different values of a series fit into a millisecond: timestamps resolve microseconds. */
const placesPerMillisecond = 1_000;

/** Skips points whose place is taken, and returns how many it inserted. `onAdded` is called for each of these. */
async function insertPoints<P extends Point>(
  sql: Sql,
  points: readonly P[],
  onAdded?: (point: P) => void,
): Promise<number> {
  if (points.length === 0) return 0;
  if (onAdded) return insertAnnouncement(sql, points, onAdded);
  const { rowCount } = await sql.query({
    name: 'insert-points',
    text: insert,
    values: pointValues(points),
  });
  return rowCount ?? 0;
}

/** If several points want one place, the first one gets it. */
async function insertAnnouncement<P extends Point>(
  sql: Sql,
  points: readonly P[],
  onAdded: (point: P) => void,
): Promise<number> {
  const { rows } = await sql.query<{ series_id: number; micros: number }>({
    name: 'insert-points-told',
    text: `${insert}
      returning series_id, (extract(epoch from ts) * 1000000)::float8 as micros`,
    values: pointValues(points),
  });
  const inserted = new Set(rows.map(({ series_id, micros }) => `${series_id} ${micros}`));
  for (const point of points) {
    const { seriesId, ts, micros } = point;
    if (inserted.delete(`${seriesId} ${ts * 1_000 + micros}`)) onAdded(point);
  }
  return rows.length;
}

const insert = `
      insert into measurement (series_id, ts, val, long, arrived, nth)
      select series_id, to_timestamp(seconds), val, long, arrived, nth
        from unnest($1::bigint[], $2::float8[], $3::float8[], $4::float8[], $5::bigint[], $6::smallint[])
          as m (series_id, seconds, val, long, arrived, nth)
          on conflict do nothing`;

function pointValues(points: readonly Point[]): string[] {
  return [
    plainArray(points.map(({ seriesId }) => seriesId)),
    // A double of seconds is exact to the microsecond until the year 2106.
    plainArray(points.map(({ ts, micros }) => (ts * 1_000 + micros) / 1_000_000)),
    plainArray(points.map(({ val }) => val)),
    plainArray(points.map(({ long }) => long)),
    plainArray(points.map(({ arrivedTs }) => arrivedTs)),
    plainArray(points.map(({ nth }) => nth)),
  ];
}

/** A point's millisecond: whether the point's own value is stored, and how many places are taken. */
type Neighbours<P> = { point: P; isThere: boolean; taken: number };

/** The points that are not at the first place of their millisecond, where nearly all are. */
async function listMissing<P extends Point>(sql: Sql, points: readonly P[]): Promise<P[]> {
  return lookUp(points, async (ofDay, isWithinDay) => {
    const { rows } = await sql.query<{ n: number }>(
      `select wanted.n
         from ${wanted}
        where not exists (
          select from measurement m
           where m.series_id = wanted.series_id and m.ts = wanted.first_ts
             and m.val = wanted.val and m.long = wanted.long and ${isWithinDay})
        order by wanted.n`,
      valuesOf(ofDay),
    );
    return rows.map(({ n }) => ofDay[n - 1] as P);
  });
}

/** The points that are stored at any place of their millisecond. */
async function listThere<P extends Point>(sql: Sql, points: readonly P[]): Promise<P[]> {
  return lookUp(points, async (ofDay, isWithinDay) => {
    const { rows } = await sql.query<{ n: number }>(
      `select wanted.n
         from ${wanted}
        where exists (
          select from measurement m
           where m.series_id = wanted.series_id
             and m.ts between wanted.first_ts and wanted.last_ts
             and m.val = wanted.val and m.long = wanted.long and ${isWithinDay})
        order by wanted.n`,
      valuesOf(ofDay),
    );
    return rows.map(({ n }) => ofDay[n - 1] as P);
  });
}

/**
 * Looks at all places of the points' milliseconds. Locks their series until the transaction ends, because two
 * transactions that placed values side by side would not see each other's.
 */
async function findNeighbours<P extends Point>(
  sql: Sql,
  points: readonly P[],
): Promise<Neighbours<P>[]> {
  await lockSeries(sql, points);
  return lookUp(points, async (ofDay, isWithinDay) => {
    const { rows } = await sql.query<{ isThere: boolean; taken: number }>(
      // Each millisecond is read once, however many of the points share it.
      `with wanted as materialized (select * from ${wanted}),
       there as materialized (
         select millisecond.series_id, millisecond.first_ts, m.ts, m.val, m.long
           from (select distinct series_id, first_ts, last_ts from wanted) millisecond
          cross join lateral (
            select m.ts, m.val, m.long
              from measurement m
             where m.series_id = millisecond.series_id
               and m.ts between millisecond.first_ts and millisecond.last_ts and ${isWithinDay}
            offset 0) m
       )
       select (wanted.series_id, wanted.first_ts, wanted.val, wanted.long) in
                (select series_id, first_ts, val, long from there) as "isThere",
              coalesce(places.taken, 0) as taken
         from wanted
         left join (
           select series_id, first_ts,
                  date_part('microseconds', max(ts))::integer % 1000 + 1 as taken
             from there
            group by series_id, first_ts) places using (series_id, first_ts)
        order by wanted.n`,
      valuesOf(ofDay),
    );
    return rows.map((row, i) => ({ ...row, point: ofDay[i] as P }));
  });
}

async function lockSeries(sql: Sql, points: readonly Point[]): Promise<void> {
  await sql.query({
    name: 'lock-series',
    // Ordered, so that two transactions cannot deadlock.
    text: 'select from series where id = any($1::bigint[]) order by id for no key update',
    values: [plainArray([...new Set(points.map(({ seriesId }) => seriesId))])],
  });
}

const dayMs = 86_400_000;

/**
 * Looks up points day by day. The statement's text contains the day and is planned each time, so that the plan covers
 * only that day's chunk. A single plan for all days would look into every chunk.
 */
async function lookUp<P extends Point, T>(
  points: readonly P[],
  ask: (ofDay: P[], isWithinDay: string) => Promise<T[]>,
): Promise<T[]> {
  const days = Map.groupBy(points, ({ ts }) => Math.floor(ts / dayMs));
  const found = [...days].map(([day, ofDay]) => {
    const [from, until] = [day * dayMs, (day + 1) * dayMs];
    return ask(ofDay, `m.ts >= ms_to_timestamp(${from}) and m.ts < ms_to_timestamp(${until})`);
  });
  return (await Promise.all(found)).flat();
}

const wanted = `
  (select *, to_timestamp(seconds) as first_ts, to_timestamp(seconds + 0.000999) as last_ts
     from unnest($1::bigint[], $2::float8[], $3::float8[], $4::float8[])
       with ordinality as m (series_id, seconds, val, long, n)
   offset 0) wanted`;

function valuesOf(points: readonly Point[]): string[] {
  return [
    plainArray(points.map(({ seriesId }) => seriesId)),
    plainArray(points.map(({ ts }) => ts / 1_000)),
    plainArray(points.map(({ val }) => val)),
    plainArray(points.map(({ long }) => long)),
  ];
}

/**
 * Stores points in milliseconds that already have other values. A value that is there stays; a new one gets the next
 * place. Returns how many were added, and the points whose millisecond is full.
 */
async function placeBeside<P extends Point>(
  sql: Sql,
  points: readonly P[],
  onAdded?: (point: P) => void,
): Promise<{ added: number; unplaced: P[] }> {
  let added = 0;
  for (;;) {
    const { placed, unplaced } = arrange(await findNeighbours(sql, points));
    const inserted = await insertPoints(sql, placed, onAdded);
    added += inserted;
    // Another transaction may have taken a first place meanwhile. The next round sees its row.
    if (inserted === placed.length) return { added, unplaced };
  }
}

function arrange<P extends Point>(all: Neighbours<P>[]): { placed: P[]; unplaced: P[] } {
  const placed: P[] = [];
  const unplaced: P[] = [];
  const added = new Map<string, Set<string>>();
  for (const { point, isThere, taken } of all) {
    const millisecond = `${point.seriesId} ${point.ts}`;
    const value = `${point.val} ${point.long}`;
    const values = added.get(millisecond) ?? new Set();
    if (isThere || values.has(value)) continue;
    const micros = taken + values.size;
    if (micros >= placesPerMillisecond) unplaced.push(point);
    else {
      placed.push({ ...point, micros });
      added.set(millisecond, values.add(value));
    }
  }
  return { placed, unplaced };
}

type NewestRow = {
  device_id: number;
  s_id: string;
  ts: number;
  val: number;
  long: number;
  arrived: number | null;
};

/**
 * For those of these senses that ever had a value, by device: the newest time, its first values and the last one.
 * `untilTs`: considers only what is not later (ms).
 */
export async function findNewest(
  sql: Sql,
  wanted: readonly Series[],
  untilTs?: number,
): Promise<ReadonlyMap<number, LastSeen>> {
  const devices = Map.groupBy(await selectNewest(sql, wanted, untilTs), (row) => row.device_id);
  return new Map([...devices].map(([deviceId, rows]) => [deviceId, toSeen(rows)]));
}

/** The same, and by device the latest arrival among these newest values, ms; devices without one are left out. */
export async function findNewestArrived(
  sql: Sql,
  wanted: readonly Series[],
): Promise<{ newest: ReadonlyMap<number, LastSeen>; arrived: ReadonlyMap<number, number> }> {
  const devices = Map.groupBy(await selectNewest(sql, wanted), (row) => row.device_id);
  const arrived = new Map<number, number>();
  for (const [deviceId, rows] of devices) {
    const known = rows.flatMap((row) => row.arrived ?? []);
    if (known.length > 0) arrived.set(deviceId, Math.max(...known));
  }
  const newest = [...devices].map(([deviceId, rows]): [number, LastSeen] => [
    deviceId,
    toSeen(rows),
  ]);
  return { newest: new Map(newest), arrived };
}

function toSeen(rows: NewestRow[]): LastSeen {
  const senses = Map.groupBy(rows, (row) => row.s_id);
  return Object.fromEntries([...senses].map(([sId, values]) => [sId, toNewest(values)]));
}

function toNewest(values: NewestRow[]): Newest {
  const vals = values.map(({ val, long }) => (Number.isNaN(long) ? val : { lat: val, long }));
  const newest = { ts: values[0]?.ts ?? 0, vals: vals.slice(0, maxValues) };
  const last = vals.at(-1);
  return vals.length <= maxValues || last === undefined ? newest : { ...newest, last };
}

async function selectNewest(
  sql: Sql,
  wanted: readonly Series[],
  untilTs?: number,
): Promise<NewestRow[]> {
  if (wanted.length === 0) return [];
  const { rows } = await sql.query<NewestRow>(findNewestQuery(wanted, untilTs));
  return rows;
}

/** Returns the values of a millisecond in the order of their arrival. */
function findNewestQuery(wanted: readonly Series[], untilTs?: number): QueryConfig {
  const isBound = untilTs !== undefined;
  return {
    name: isBound ? 'find-newest-until' : 'find-newest',
    // The newest row has microseconds only if its millisecond has several values. Only then the second look-up runs:
    // its bounds vary, so it has to find its chunk among all of them.
    text: `
      select series.device_id, series.s_id, found.ts, found.val, found.long, newest.arrived
        from unnest($1::bigint[], $2::text[]) as wanted (device_id, s_id)
        join series using (device_id, s_id)
       cross join lateral (
         select m.ts, date_trunc('milliseconds', m.ts) as first_ts, m.val, m.long, m.arrived
           from measurement m
          where m.series_id = series.id${isBound ? ' and m.ts < ms_to_timestamp($3::bigint + 1)' : ''}
          order by m.ts desc
          limit 1) newest
       cross join lateral (
         (select m.ts, m.val, m.long
            from measurement m
           where newest.first_ts < newest.ts
             and m.series_id = series.id and m.ts >= newest.first_ts and m.ts < newest.ts
           order by m.ts
           limit ${maxValues})
         union all
         select newest.ts, newest.val, newest.long) found
       order by found.ts`,
    values: [
      wanted.map(({ deviceId }) => deviceId),
      wanted.map(({ sId }) => sId),
      ...(isBound ? [untilTs] : []),
    ],
  };
}

/** A sense of a device between two times (ms, inclusive), and whether its greatest or its least value is asked for. */
type AskedExtreme = { deviceId: number; sId: string; fromTs: number; toTs: number; isMax: boolean };

/** The time of the first measurement of a sense between two times, exclusive; null if there is none. Ms. */
export async function findWithin(
  sql: Sql,
  deviceId: number,
  { sId, afterTs, beforeTs }: { sId: string; afterTs: number; beforeTs: number },
): Promise<number | null> {
  const { rows } = await sql.query<{ ts: number }>({
    name: 'find-within',
    text: `
      select m.ts
        from series
        join measurement m
          on m.series_id = series.id and m.ts >= ms_to_timestamp($3) and m.ts < ms_to_timestamp($4)
       where series.device_id = $1 and series.s_id = $2
       order by m.ts
       limit 1`,
    values: [deviceId, sId, afterTs + 1, beforeTs],
  });
  return rows[0]?.ts ?? null;
}

type ExtremeRow = { place: number; val: number; ts: number; count: number };

/**
 * The greatest or least number of each range and its time (ms), the earliest of equal ones; null if there is none, or
 * if the range has more than `most` values. Positions do not count.
 */
export async function findExtremes(
  sql: Sql,
  asked: readonly AskedExtreme[],
  most: number,
): Promise<({ sId: string; val: number; ts: number } | null)[]> {
  if (asked.length === 0) return [];
  const { rows } = await sql.query<ExtremeRow>({
    name: 'find-extremes',
    text: `
      select wanted.place, found.val, found.ts, found.count
        from unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::boolean[])
               with ordinality as wanted (device_id, s_id, from_ts, to_ts, is_max, place)
        join series using (device_id, s_id)
       cross join lateral (
         select val, ts, count(*) over ()
           from (select m.val, m.ts
                   from measurement m
                  where m.series_id = series.id and m.long = 'NaN'
                    and m.ts >= ms_to_timestamp(wanted.from_ts)
                    and m.ts < ms_to_timestamp(wanted.to_ts + 1)
                  order by m.ts desc
                  limit $6::integer + 1) points
          order by case when wanted.is_max then -val else val end, ts
          limit 1) found`,
    values: [
      asked.map(({ deviceId }) => deviceId),
      asked.map(({ sId }) => sId),
      asked.map(({ fromTs }) => fromTs),
      asked.map(({ toTs }) => toTs),
      asked.map(({ isMax }) => isMax),
      most,
    ],
  });
  const found = new Map(rows.map((row) => [row.place, row]));
  return asked.map(({ sId }, at) => {
    const row = found.get(at + 1);
    return row && row.count <= most ? { sId, val: row.val, ts: row.ts } : null;
  });
}
