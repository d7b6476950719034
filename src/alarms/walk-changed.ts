import type { AlarmChangeRow } from '../contract/alarm.ts';
import type { Sql } from '../db/sql.ts';
import { alarmColumns, toAlarm, type AlarmRow } from './rows.ts';
import { toAlarmView } from './view.ts';

type Position = { snapshot: string; ts: number };

/**
 * Alarms that changed between the two positions of a stream, each once and as it is now: how it became so is
 * kept as long as the feed. Those of removed devices are gone.
 */
export async function* walkChangedAlarms(
  sql: Sql,
  { accountId, deviceId }: { accountId: number; deviceId: number | null },
  { from, to }: { from: Position; to: Position },
  limit: number,
): AsyncGenerator<AlarmChangeRow[]> {
  for (let after = 0; ;) {
    const { rows } = await sql.query<AlarmRow & { deviceName: string }>({
      name: 'alarms-changed',
      text: `
        select ${alarmColumns}, d.name as "deviceName"
          from alarm a
          join device d on d.id = a.device_id and d.account_id = a.account_id
         where a.account_id = $1
           and ($2::bigint is null or a.device_id = $2)
           and a.id > $3
           and a.xact >= pg_snapshot_xmin($4::pg_snapshot)
           and not pg_visible_in_snapshot(a.xact, $4::pg_snapshot)
           and pg_visible_in_snapshot(a.xact, $5::pg_snapshot)
         order by a.id
         limit $6`,
      values: [accountId, deviceId, after, from.snapshot, to.snapshot, limit],
    });
    if (rows.length > 0) yield rows.map((row) => toRow(row, to.ts));
    if (rows.length < limit) return;
    after = rows.at(-1)?.alarmId ?? after;
  }
}

function toRow({ deviceName, ...row }: AlarmRow & { deviceName: string }, ts: number) {
  const alarm = toAlarm(row);
  const { alarmId } = alarm;
  const change = alarm.closedTs === null ? ('fired' as const) : ('closed' as const);
  const around = { deviceName, snoozed: null, muted: null };
  const body = { change, alarmId, alarm: toAlarmView(alarm, around) };
  const { deviceId, uuid } = alarm.device;
  return { type: 'alarm' as const, ts, seq: 0, body, deviceId, uuid };
}
