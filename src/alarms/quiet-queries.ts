import type { EventName } from '../contract/event.ts';
import type { Sql } from '../db/sql.ts';
import type { Quiet } from './alarm.ts';

/** Of an event of a device; another one takes its place. */
export async function saveSnooze(
  tx: Sql,
  deviceId: number,
  snooze: Quiet & { of: EventName; pId: string; ts: number },
): Promise<void> {
  const { of, pId, untilTs, reason, by, ts } = snooze;
  await tx.query(
    `insert into alarm_snooze
       (device_id, pu_id, st_id, ev_id, p_id, until_at, reason, snoozed_by, snoozed_at)
     values ($1, $2, $3, $4, $5, ms_to_timestamp($6), $7, $8, ms_to_timestamp($9))
     on conflict (device_id, pu_id, st_id, ev_id) do update
       set p_id = excluded.p_id, until_at = excluded.until_at, reason = excluded.reason,
           snoozed_by = excluded.snoozed_by, snoozed_at = excluded.snoozed_at`,
    [deviceId, of.puId, of.stId, of.evId, pId, untilTs, reason, by, ts],
  );
}

export async function removeSnooze(tx: Sql, deviceId: number, of: EventName): Promise<void> {
  await tx.query(
    `delete from alarm_snooze where device_id = $1 and pu_id = $2 and st_id = $3 and ev_id = $4`,
    [deviceId, of.puId, of.stId, of.evId],
  );
}

/** Of all events of devices; another one takes its place. */
export async function saveMutes(
  tx: Sql,
  deviceIds: readonly number[],
  { untilTs, reason, by, ts }: Quiet & { ts: number },
): Promise<void> {
  await tx.query(
    `insert into device_mute (device_id, until_at, reason, muted_by, muted_at)
     select id, ms_to_timestamp($2), $3, $4, ms_to_timestamp($5)
       from unnest($1::bigint[]) as muted (id)
     on conflict (device_id) do update
       set until_at = excluded.until_at, reason = excluded.reason, muted_by = excluded.muted_by,
           muted_at = excluded.muted_at`,
    [deviceIds, untilTs, reason, by, ts],
  );
}

export async function removeMutes(tx: Sql, deviceIds: readonly number[]): Promise<void> {
  await tx.query('delete from device_mute where device_id = any($1::bigint[])', [deviceIds]);
}

/** Whether the account's current profile of the device is still the one that an alarm is of. */
export async function hasProfile(tx: Sql, deviceId: number, pId: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `select from device_profile
      where device_id = $1 and profile_id::text = $2 and state = 'current'`,
    [deviceId, pId],
  );
  return rowCount === 1;
}
