import type { Sql } from '../db/sql.ts';

/** What reading a device takes, in bytes of JSON: what is its own, and the profiles that others may have too. */
export type ReadSize = { bytes: number; profiles: { id: string; bytes: number }[] };

/** By device; one that was removed is not among them. */
export async function listSizes(sql: Sql, deviceIds: number[]): Promise<Map<number, ReadSize>> {
  const { rows } = await sql.query<ReadSize & { device_id: number }>({
    name: 'ingest-sizes',
    text: `
      select s.device_id,
             octet_length(d.configuration::text) + coalesce(octet_length(s.runtime::text), 0)
               as bytes,
             coalesce(p.profiles, '[]') as profiles
        from device_state s
        join device d on d.id = s.device_id
        left join lateral (
          select json_agg(json_build_object('id', content.id, 'bytes', content.bytes)) as profiles
            from device_profile installed
            join profile on profile.id = installed.profile_id
            join profile_content content on content.id = profile.content_id
           where installed.device_id = d.id
             and installed.state in ('current', 'pending', 'sent')) as p on true
       where s.device_id = any($1::bigint[])`,
    values: [deviceIds],
  });
  return new Map(rows.map(({ device_id, bytes, profiles }) => [device_id, { bytes, profiles }]));
}
