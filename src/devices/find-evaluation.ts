import type { Purpose } from '../contract/purpose.ts';
import type { Sql } from '../db/sql.ts';
import type { StoredRuntime } from '../engine/read-runtime.ts';
import type { StoredLog } from '../engine/replay.ts';

type EvaluationRow = {
  device_id: number;
  runtime: StoredRuntime | null;
  evidence_log: StoredLog[] | null;
  profile_id: string | null;
  engine: 'service' | 'device' | null;
  purposes: Purpose[] | null;
};

/** Where a device of the account stands in its current profile; null where there is no such device. */
export async function findEvaluation(
  db: Sql,
  accountId: number,
  uuid: string,
): Promise<EvaluationRow | null> {
  const { rows } = await db.query<EvaluationRow>(
    `
      select s.device_id, s.runtime,
             (select json_agg(l order by l.version)
                from evidence_log l where l.device_id = s.device_id) as evidence_log,
             c.profile_id, c.engine, pc.purposes
        from device d
        join device_state s on s.device_id = d.id
        left join device_profile c on c.device_id = d.id and c.state = 'current'
        left join profile p on p.id = c.profile_id
        left join profile_content pc on pc.id = p.content_id
       where d.uuid = $2 and d.account_id = $1`,
    [accountId, uuid],
  );
  return rows[0] ?? null;
}
