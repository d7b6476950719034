import type { Sql } from '../db/sql.ts';
import { walkSlices } from '../exports/walk-slices.ts';

/** A sense of a device, with what its rows say of whose they are. */
export type ExportSeries = { seriesId: number; deviceAuthUuid: string; sId: string };

/** Times in ms, inclusive. */
export type ExportRange = { start: number; end: number; order: 'asc' | 'desc' };

/** How points are written. `ts` and `val` are lists of columns. */
export type PointFormat = 'json' | 'ndjson' | 'csv' | 'columns';

/** What a statement gave of one series: text of some points, ready to be sent. */
export type PointBlock = { series: ExportSeries; text: string; vals: string };

/** A statement gives no more points than this: that is all that is ever held in memory. */
const blockPoints = 20_000;
/** Nor are more series looked at by it. */
const blockSeries = 500;

/** Whole milliseconds; a double of seconds is exact to the microsecond, and a little is added lest it round down. */
const ms = `floor(date_part('epoch', m.ts) * 1000 + 0.0005)::bigint`;
const value = `case when m.long = 'NaN' then m.val::text
                    else concat('{"lat":', m.val, ',"long":', m.long, '}') end`;
const row = `concat(w.prefix, ${value}, ',"ts":', ${ms}, '}')`;

const texts: Record<PointFormat, { text: string; separator: string; vals: string }> = {
  json: { text: row, separator: ',', vals: `''` },
  ndjson: { text: `${row} || chr(10)`, separator: '', vals: `''` },
  csv: {
    text: `concat(w.prefix, ${ms}, case when m.long = 'NaN' then concat(',', m.val, ',,')
                                        else concat(',,', m.val, ',', m.long) end, chr(13), chr(10))`,
    separator: '',
    vals: `''`,
  },
  columns: { text: `${ms}::text`, separator: ',', vals: value },
};

function prefixOf({ deviceAuthUuid, sId }: ExportSeries, format: PointFormat): string {
  if (format === 'csv') return `${deviceAuthUuid},${sId},`;
  return `{"deviceAuthUuid":"${deviceAuthUuid}","sId":"${sId}","val":`;
}

type BlockRow = { place: number; count: number; micros: string; text: string; vals: string };

/**
 * All points of some series, one series after the other, as text that the database writes: row by row it takes
 * twice as long.
 */
export function walkPoints(
  sql: Sql,
  all: ExportSeries[],
  range: ExportRange,
  format: PointFormat,
): AsyncGenerator<PointBlock[]> {
  return walkSlices(all, blockSeries, async (slice, after: string | null) => {
    const rows = await readBlock(sql, slice, { ...range, after }, format);
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
  format: PointFormat,
): Promise<BlockRow[]> {
  const { text, separator, vals } = texts[format];
  const [beyond, newest] = order === 'asc' ? ['>', 'max'] : ['<', 'min'];
  const { rows } = await sql.query<BlockRow>({
    name: `export-points-${format}-${order}`,
    // Where a block goes on within a series, it is the first one.
    text: `
      select place::integer, count(*)::integer as count,
             (extract(epoch from ${newest}(ts)) * 1000000)::bigint::text as micros,
             string_agg(text, '${separator}' order by ts ${order}) as text,
             string_agg(vals, ',' order by ts ${order}) as vals
        from (
          select w.place, m.ts, ${text} as text, ${vals} as vals
            from unnest($1::bigint[], $2::text[]) with ordinality as w (series_id, prefix, place)
           cross join lateral (
             select ts, val, long
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
