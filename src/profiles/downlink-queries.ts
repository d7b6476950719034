import type { Configuration } from '../contract/configuration.ts';
import type { Purpose } from '../contract/purpose.ts';
import { unseenArray } from '../db/array.ts';
import type { Sql } from '../db/sql.ts';
import { awaiting, transition } from './transition-sql.ts';

const received = transition('received');

/** What may be due to a device. `offered`: the profile that waits, or the one it runs and never saw. */
export type DueDownlinkRow = {
  device_id: number;
  configuration: Configuration;
  configured_at: number;
  pu_id: number;
  st_id: number;
  state_at: number;
  answers_profiles: boolean;
  offered_id: string | null;
  offered_purposes: Purpose[] | null;
  offered_at: number | null;
};

/** By device; one that is gone is left out. */
export async function listDueDownlinks(
  db: Sql,
  deviceIds: number[],
): Promise<Map<number, DueDownlinkRow>> {
  const { rows } = await db.query<DueDownlinkRow>({
    name: 'profiles-due',
    text: `
      select s.device_id, d.configuration, d.configured_at, s.pu_id, s.st_id, s.state_at,
             s.answers_profiles, p.id as offered_id, pc.purposes as offered_purposes,
             p.created_at as offered_at
        from device_state s
        join device d on d.id = s.device_id
        left join device_profile w on w.device_id = s.device_id and w.state in ${awaiting}
        left join device_profile c on c.device_id = s.device_id and c.state = 'current'
                                  and c.delivered_at is null
        left join profile p on p.id = coalesce(w.profile_id, c.profile_id)
        left join profile_content pc on pc.id = p.content_id
       where s.device_id = any(${unseenArray('$1', 'bigint')})`,
    values: [deviceIds],
  });
  return new Map(rows.map((row) => [row.device_id, row]));
}

/** From now on the devices answer for themselves: a profile no longer becomes current unasked. */
export async function rememberAnswering(db: Sql, deviceIds: number[]): Promise<void> {
  await db.query(
    `
      update device_state
         set answers_profiles = true, version = version + 1
       where device_id = any($1::bigint[]) and not answers_profiles`,
    [deviceIds],
  );
}

/** The device has the profile; where that waited for it, this is its next step. */
export async function markDelivered(db: Sql, deviceId: number, profileId: string): Promise<void> {
  await db.query({
    name: 'profiles-mark-delivered',
    text: `
      update device_profile
         set delivered_at = now(),
             state = case when state in ${received.from} then ${received.to} else state end,
             changed_at = case when state in ${received.from} then now() else changed_at end
       where device_id = $1 and profile_id = $2 and delivered_at is null`,
    values: [deviceId, profileId],
  });
}
