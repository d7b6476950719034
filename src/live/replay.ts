import { kindOf } from '../db/errors.ts';
import type { Sql } from '../db/sql.ts';
import { isKnownTo, type StreamPosition } from '../streams/position.ts';
import type { LiveFilter } from './group.ts';
import { type LivePosition, type SentSense, Value } from './value.ts';

/** So long a reader may have been away; what is older is in the history only. */
const awayMs = 24 * 3_600_000;

const pageSeries = 500;
const pageRows = 2_000;

type ReplayOptions = {
  /** Reads its pages, in turn. */
  sql: Sql;
  filter: LiveFilter;
  from: LivePosition;
  present: StreamPosition;
};

/** Before it nothing is sent to who resumes, in ms. */
export function startOf({ position }: LivePosition, present: StreamPosition): number {
  const earliest = present.ts - awayMs;
  return isKnownTo(position, present) ? earliest : Math.max(earliest, position.ts);
}

/**
 * Of each sense what is later than the last value that was sent of it, sense by sense; with `maxHz` the newest
 * of each period. A position that this database does not know gives its time: of each sense what is later.
 */
export async function* replayValues(options: ReplayOptions): AsyncGenerator<Value[]> {
  const { sql, filter, from, present } = options;
  const { accountId, ids } = filter.reach;
  const isKnown = isKnownTo(from.position, present);
  const missing = {
    startTs: startOf(from, present),
    seen: isKnown ? from.position : null,
    sentMicros: microsOf(from.sent),
  };
  const thin = thinOut(filter.maxHz);
  const reached = ids();
  const wanted = { ids: reached && [...reached], senses: filter.senses };
  let after = 0;
  for (;;) {
    const page = { after, limit: pageSeries };
    const series = await listSeries(sql, accountId, wanted, page);
    for await (const values of readSeries(sql, series, missing)) {
      const kept = values.filter((value) => filter.reach.has(value.deviceId));
      yield thin.next(kept);
    }
    const last = series.at(-1);
    if (!last || series.length < pageSeries) break;
    after = last.id;
  }
  yield thin.end();
}

type Missing = {
  startTs: number;
  seen: StreamPosition | null;
  sentMicros: Map<string, number>;
};

async function* readSeries(
  sql: Sql,
  series: MissedSeries[],
  { startTs, seen, sentMicros }: Missing,
): AsyncGenerator<Value[]> {
  let rest = series.map((one) => ({
    ...one,
    afterMicros: sentMicros.get(`${one.deviceId} ${one.sId}`) ?? 0,
  }));
  while (rest.length > 0) {
    const rows = await readRows(sql, {
      seriesIds: rest.map(({ id }) => id),
      afterMicros: rest.map(({ afterMicros }) => afterMicros),
      startTs,
      seen,
    });
    const asked = rest;
    yield rows.flatMap((row) => {
      const one = asked[row.place];
      return one ? [toValue(one, row)] : [];
    });
    const last = rows.at(-1);
    if (!last || rows.length < pageRows) return;
    rest = rest.slice(last.place);
    if (rest[0]) rest[0].afterMicros = last.micros;
  }
}

/** Where chunks of the last day are compressed already, it cannot be told what the reader has seen. */
async function readRows(sql: Sql, query: Parameters<typeof listMissed>[1]): Promise<MissedRow[]> {
  try {
    return await listMissed(sql, query, pageRows);
  } catch (error) {
    if (query.seen === null || ['unavailable', 'cancelled'].includes(kindOf(error))) throw error;
    const startTs = Math.max(query.startTs, query.seen.ts);
    return listMissed(sql, { ...query, startTs, seen: null }, pageRows);
  }
}

function toValue(series: MissedSeries, { ts, val, long }: MissedRow): Value {
  // A number's `long` is NaN in the table: a position has both.
  return new Value(
    series,
    Number.isNaN(long) ? [series.sId, ts, val] : [series.sId, ts, val, long],
  );
}

/** All of the millisecond of the last value that was sent. */
function microsOf(sent: SentSense[]): Map<string, number> {
  return new Map(sent.map(({ deviceId, sId, ts }) => [`${deviceId} ${sId}`, ts * 1_000 + 999]));
}

/** Of values in the order of senses and times the last of each period. */
function thinOut(maxHz: number | undefined) {
  if (maxHz === undefined) return { next: (values: Value[]) => values, end: () => [] };
  const periodMs = 1_000 / maxHz;
  let last: Value | undefined;
  return {
    next(values: Value[]): Value[] {
      const kept: Value[] = [];
      for (const value of values) {
        const isSame =
          last?.key === value.key &&
          Math.floor(last.ts / periodMs) === Math.floor(value.ts / periodMs);
        if (last && !isSame) kept.push(last);
        last = value;
      }
      return kept;
    },
    end: () => (last ? [last] : []),
  };
}

type MissedSeries = { id: number; deviceId: number; uuid: string; sId: string };

/** A page of an account's senses behind `after`; `ids`: only of these devices, null: of all. */
async function listSeries(
  sql: Sql,
  accountId: number,
  { ids, senses }: { ids: readonly number[] | null; senses: readonly string[] | undefined },
  { after, limit }: { after: number; limit: number },
): Promise<MissedSeries[]> {
  const { rows } = await sql.query<MissedSeries>({
    name: 'list-missed-series',
    text: `
      select s.id, s.device_id as "deviceId", d.uuid, s.s_id as "sId"
        from device d
        join series s on s.device_id = d.id
       where d.account_id = $1
         and ($2::bigint[] is null or d.id = any($2))
         and ($3::text[] is null or s.s_id = any($3))
         and s.id > $4
       order by s.id
       limit $5`,
    values: [accountId, ids, senses, after, limit],
  });
  return rows;
}

/** `place`: of the series among those that were asked for; `micros` since the epoch. */
type MissedRow = { place: number; micros: number; ts: number; val: number; long: number };

type MissedQuery = {
  seriesIds: number[];
  /** Of each series only what is later, in microseconds since the epoch. */
  afterMicros: number[];
  /** Nothing before it, in ms. */
  startTs: number;
  /** What the reader has seen; null: that cannot be told from the rows. */
  seen: StreamPosition | null;
};

/**
 * Of each series what is later than the newest value that a position sees, in the order of the series and of
 * time. The transaction that wrote a row is its `xmin`, of which the upper half is that of the snapshot.
 */
async function listMissed(
  sql: Sql,
  { seriesIds, afterMicros, startTs, seen }: MissedQuery,
  limit: number,
): Promise<MissedRow[]> {
  const newestSeen = `
         select date_trunc('milliseconds', o.ts) + interval '1 millisecond'
           from measurement o
          where o.series_id = wanted.series_id
            and o.ts >= ms_to_timestamp($3)
            and pg_visible_in_snapshot(
                  (case when o.xmin::text::bigint + present.era < present.xmax
                        then o.xmin::text::bigint + present.era
                        else o.xmin::text::bigint + present.era - 4294967296 end)::text::xid8,
                  $5::pg_snapshot)
          order by o.ts desc
          limit 1`;
  const { rows } = await sql.query<MissedRow>({
    // Without a name, so that it is planned for these values: the columns of compressed chunks have no xmin,
    // and the plan must leave those chunks out.
    text: `
      select wanted.place - 1 as place, found.ts, found.micros, found.val, found.long
        from unnest($1::bigint[], $2::bigint[]) with ordinality
               as wanted (series_id, after_micros, place)
       cross join (
         select xmax, xmax / 4294967296 * 4294967296 as era
           from (select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as xmax) snapshot
          offset 0) present
       cross join lateral (
         select m.ts, (extract(epoch from m.ts) * 1000000)::bigint as micros, m.val, m.long
           from measurement m
          where m.series_id = wanted.series_id
            and m.ts >= ms_to_timestamp($3)
            and m.ts > ms_to_timestamp(0) + wanted.after_micros * interval '1 microsecond'
            ${seen ? `and m.ts >= coalesce((${newestSeen}), '-infinity')` : ''}
          order by m.ts
          limit $4) found
       order by wanted.place, found.ts
       limit $4`,
    values: [seriesIds, afterMicros, startTs, limit, ...(seen ? [seen.snapshot] : [])],
  });
  return rows;
}
