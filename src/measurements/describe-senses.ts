import type { Sql } from '../db/sql.ts';
import type { LatestView } from './schema.ts';

export type SenseWords = Pick<LatestView, 'name' | 'unit' | 'decimals'>;

type Row = {
  device_id: number;
  s_id: string;
  name: string | null;
  unit: string | null;
  decimals: number | null;
};

/** How people are told of the senses of these devices, by "deviceId sId"; those that nothing is said of are left out. */
export async function describeSenses(
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
