import { kindOf } from '../db/errors.ts';
import type { Sql } from '../db/sql.ts';
import { isKnownTo, type StreamPosition } from '../streams/position.ts';
import type { LiveFilter } from './group.ts';
import type { LivePosition, SentSense } from './live-position.ts';
import { listMissed, listSeries, type MissedRow, type MissedSeries } from './missed-queries.ts';
import { Value } from './value.ts';

/** So long a reader may have been away; what is older is in the history only. */
const awayMs = 24 * 3_600_000;

const pageSeries = 500;
const pageRows = 2_000;

export type CatchUpOptions = {
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
export async function* catchUpValues(options: CatchUpOptions): AsyncGenerator<Value[]> {
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
