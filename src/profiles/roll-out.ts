import type { ProfileState } from '../contract/profile.ts';
import type { Sql } from '../db/sql.ts';

export type RollOutRow = {
  uuid: string;
  state: ProfileState;
  answer_text: string | null;
  changed_at: number;
};

/** How far a profile is on each of its devices; null when the account has no such profile. */
export async function findRollOut(
  db: Sql,
  accountId: number,
  profileId: string,
  labels: readonly string[] | null = null,
): Promise<RollOutRow[] | null> {
  const { rows } = await db.query<RollOutRow | { [K in keyof RollOutRow]: null }>(
    `
      select d.uuid, dp.state, dp.answer_text, dp.changed_at
        from profile p
        left join device_profile dp on dp.profile_id = p.id
        left join device d on d.id = dp.device_id and d.account_id = p.account_id
                          and ($3::text[] is null or d.labels && $3)
       where p.id = $2 and p.account_id = $1
       order by d.id`,
    [accountId, profileId, labels],
  );
  if (rows.length === 0) return null;
  return rows.filter((row): row is RollOutRow => row.uuid !== null);
}
