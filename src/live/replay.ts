import { kindOf } from '../db/errors.ts';
import type { Sql } from '../db/sql.ts';
import { isKnownTo, type StreamPosition } from '../streams/position.ts';
import type { LiveFilter } from './group.ts';
import { type LivePosition, type SentSense, Value } from './value.ts';

/** How far back a replay goes. Older values are in the history only. */
const awayMs = 24 * 3_600_000;

const pageSeries = 500;
const pageRows = 2_000;

type ReplayOptions = {
  /** Its queries wait for the account's place among other large reads. */
  sql: Sql;
  filter: LiveFilter;
  from: LivePosition;
  present: StreamPosition;
};

/** The time in ms before which a resuming reader is sent nothing. */
export function startOf({ position }: LivePosition, present: StreamPosition): number {
  const earliest = present.ts - awayMs;
  return isKnownTo(position, present) ? earliest : Math.max(earliest, position.ts);
}

/**
 * Yields the values of each sense that are later than the last one sent, sense by sense; with `maxHz` the newest
 * of each period. If this database does not know the position, its time decides instead.
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

/** Rows of compressed chunks do not show whether the reader has seen them; its last time then decides. */
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
  // For a number, `long` is NaN in the table.
  return new Value(
    series,
    Number.isNaN(long) ? [series.sId, ts, val] : [series.sId, ts, val, long],
  );
}

/** The end of the millisecond of each last value. */
function microsOf(sent: SentSense[]): Map<string, number> {
  return new Map(sent.map(({ deviceId, sId, ts }) => [`${deviceId} ${sId}`, ts * 1_000 + 999]));
}

/** Keeps the last value of each period. Expects values ordered by sense and time. */
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

/** A page of an account's series after `after`. `ids`: only those of these devices; null: of all. */
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

/** `place`: the index of its series in the query. `micros`: since the epoch. */
type MissedRow = { place: number; micros: number; ts: number; val: number; long: number };

type MissedQuery = {
  seriesIds: number[];
  /** For each series, only later rows; in microseconds since the epoch. */
  afterMicros: number[];
  /** Nothing earlier, in ms. */
  startTs: number;
  /** What the reader has seen; null if the rows cannot show it. */
  seen: StreamPosition | null;
};

/**
 * Lists what each series has after the newest value that the position sees, ordered by series and time. A row's
 * `xmin` is the transaction that wrote it, without its upper 32 bits, which come from the present snapshot.
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
    // Unnamed, so that it is planned for these values: the columns of compressed chunks have no xmin, so the plan
    // must leave those chunks out.
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
