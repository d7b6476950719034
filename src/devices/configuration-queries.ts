import { awaitingAnswer } from '../contract/profile.ts';
import { textList } from '../db/text-list.ts';
import type { Configuration } from '../contract/configuration.ts';
import { unseenArray } from '../db/array.ts';
import { jsonAsText } from '../db/json-as-text.ts';
import type { Sql } from '../db/sql.ts';
import { nameOf } from './queries.ts';

/** JSON stays the stored text: it is passed on unchanged, and may be megabytes. */
export type ConfigurationRow = {
  configuration: string;
  pu_id: number;
  st_id: number;
  state_at: number;
  current_id: string | null;
  current_purposes: string | null;
  current_at: number | null;
  pending_id: string | null;
  pending_purposes: string | null;
  pending_at: number | null;
};

/** Devices' descriptions with their profiles and state, by uuid; devices that do not exist are left out. */
export async function listConfigurations(
  db: Sql,
  uuids: string[],
): Promise<Map<string, ConfigurationRow & { account_id: number }>> {
  const { rows } = await db.query<ConfigurationRow & { uuid: string; account_id: number }>({
    name: 'devices-configurations',
    text: `
      select d.uuid, d.account_id, d.configuration, s.pu_id, s.st_id, s.state_at,
             c.profile_id as current_id, cc.purposes as current_purposes, c.changed_at as current_at,
             p.profile_id as pending_id, pc.purposes as pending_purposes, pp.created_at as pending_at
        from device d
        join device_state s on s.device_id = d.id
        left join device_profile c on c.device_id = d.id and c.state = 'current'
        left join profile cp on cp.id = c.profile_id
        left join profile_content cc on cc.id = cp.content_id
        left join device_profile p on p.device_id = d.id and p.state in ${textList(awaitingAnswer)}
        left join profile pp on pp.id = p.profile_id
        left join profile_content pc on pc.id = pp.content_id
       where d.uuid = any(${unseenArray('$1', 'uuid')})`,
    values: [uuids],
    types: jsonAsText,
  });
  return new Map(rows.map((row) => [row.uuid, row]));
}

/**
 * Replaces the configuration and voids what was computed from the one before; gives the device's
 * id, or null when the account has no such device.
 */
export async function updateConfiguration(
  tx: Sql,
  accountId: number,
  uuid: string,
  configuration: Configuration,
): Promise<number | null> {
  // The state's row first, as ingest does, so that the two never wait for each other.
  const { rows } = await tx.query<{ id: number }>(
    `
      with changed as (
        update device_state s
           set version = version + 1
          from device d
         where d.uuid = $2 and d.account_id = $1 and s.device_id = d.id
        returning s.device_id
      )
      update device d
         set configuration = $3::text::json, name = $4, configured_at = now()
        from changed
       where d.id = changed.device_id
      returning d.id`,
    [accountId, uuid, JSON.stringify(configuration), nameOf(configuration)],
  );
  return rows[0]?.id ?? null;
}
