import type { ProfileState } from '../contract/profile.ts';
import type { Sql } from '../db/sql.ts';

type ProfileOfDevice = {
  pId: string;
  state: ProfileState;
  text?: string;
  engine: 'service' | 'device';
  installedTs: number;
  ts: number;
};

export type DeviceFacts = {
  connectorId: number;
  registeredTs: number;
  configuredTs: number;
  previousToken: boolean;
  profiles: ProfileOfDevice[];
};

/** What is known of one device beside what lists have; null when the account has no such device. */
export async function findDeviceFacts(
  sql: Sql,
  accountId: number,
  uuid: string,
): Promise<DeviceFacts | null> {
  const { rows } = await sql.query<DeviceFacts>(
    `
      select d.connector_id as "connectorId", d.created_at as "registeredTs",
             d.configured_at as "configuredTs", d.previous_token_accepted as "previousToken",
             coalesce((
               select json_agg(json_strip_nulls(row_to_json(newest)))
                 from (
                   select p.profile_id as "pId", p.state, p.answer_text as text, p.engine,
                          floor(extract(epoch from i.created_at) * 1000)::bigint as "installedTs",
                          floor(extract(epoch from p.changed_at) * 1000)::bigint as ts
                     from device_profile p
                     join profile i on i.id = p.profile_id
                    where p.device_id = d.id
                    order by i.created_at desc, p.profile_id
                    limit 10) newest), '[]') as profiles
        from device d
       where d.uuid = $2 and d.account_id = $1`,
    [accountId, uuid],
  );
  return rows[0] ?? null;
}
