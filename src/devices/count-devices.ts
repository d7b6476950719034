import type { Sql } from '../db/sql.ts';
import {
  hasAlarm,
  isIntermittent,
  isRefused,
  joinMutes,
  waits,
  within,
  type FleetFilter,
} from './fleet-sql.ts';

export type FleetCounts = {
  all: number;
  online: number;
  offline: number;
  intermittent: number;
  /** With an open alarm. */
  alarm: number;
  /** Their newest login was refused. */
  refused: number;
  /** Whose mute has not ended. */
  muted: number;
  pendingProfile: number;
};

const none: FleetCounts = {
  all: 0,
  online: 0,
  offline: 0,
  intermittent: 0,
  alarm: 0,
  refused: 0,
  muted: 0,
  pendingProfile: 0,
};

/** Of all devices within reach, whatever is looked for. */
export async function countDevices(
  sql: Sql,
  filter: Pick<FleetFilter, 'accountId' | 'labels' | 'nowTs' | 'intermittent'>,
): Promise<FleetCounts> {
  const { accountId, labels, nowTs, intermittent } = filter;
  const { rows } = await sql.query<FleetCounts>(
    `
      select count(*)::integer as all,
             (count(*) filter (where c.connected))::integer as online,
             (count(*) filter (where c.connected is not true and not ${isIntermittent('$4')}))::integer
               as offline,
             (count(*) filter (where ${isIntermittent('$4')}))::integer as intermittent,
             (count(*) filter (where ${hasAlarm}))::integer as alarm,
             (count(*) filter (where ${isRefused}))::integer as refused,
             count(m.device_id)::integer as muted,
             (count(*) filter (where ${waits}))::integer as "pendingProfile"
        from device d
        left join presence c on c.device_id = d.id ${joinMutes('$3')}
       where ${within}`,
    [accountId, labels, nowTs, intermittent],
  );
  return rows[0] ?? none;
}
