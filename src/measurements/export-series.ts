import type { Sql } from '../db/sql.ts';
import { refuseTooMuch } from '../exports/exports.ts';
import type { ExportRange, ExportSeries } from './export-points.ts';

/** Which senses of which devices. `within`: only devices that have one of these labels; null: any. */
export type SeriesFilter = {
  accountId: number;
  uuids: string[] | undefined;
  label: string | undefined;
  senses: string[] | undefined;
  within: readonly string[] | null;
};

/** All that ever measured something, by device and sense. */
export async function listExportSeries(
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

/** Throws `invalid-input` where there is more in the range than one answer has. */
export async function refuseTooManyPoints(
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
      instead: 'a shorter range, fewer devices or senses, or for buckets (bucket=1h)',
    },
  );
}
