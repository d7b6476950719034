import type { AlarmChangeKind } from '../contract/alarm.ts';
import { documentsOf, jsonSequence } from '../db/array.ts';
import type { Sql } from '../db/sql.ts';
import type { Alarm } from './alarm.ts';
import { insertRows, updateRows, valuesOf } from './rows.ts';
import { foremost, toAlarmView, type AroundAlarm } from './view.ts';

/** An alarm as it is after a transaction, and what the transaction did to it. */
export type Changed = {
  alarm: Alarm;
  isNew: boolean;
  /** What streams are told of. */
  changes: readonly AlarmChangeKind[];
  around: AroundAlarm;
  /** When, ms. */
  ts: number;
};

/** Numbers for alarms that are to be stored. */
export async function reserveIds(tx: Sql, count: number): Promise<number[]> {
  if (count === 0) return [];
  const { rows } = await tx.query<{ id: number }>({
    name: 'alarms-reserve-ids',
    text: `
      select nextval(pg_get_serial_sequence('alarm', 'id')) as id from generate_series(1, $1::integer)`,
    values: [count],
  });
  return rows.map(({ id }) => id);
}

/**
 * Writes alarms whose devices are locked (`loadDevices`), and what streams are told of them. What was opened
 * beyond the account's quota goes with its closing; where both are of this transaction, nothing is written.
 */
export async function saveAlarms(tx: Sql, all: readonly Changed[]): Promise<void> {
  const isGone = ({ isBeyondQuota, closedTs }: Alarm) => isBeyondQuota && closedTs !== null;
  const changed = all.filter(({ isNew, alarm }) => !(isNew && isGone(alarm)));
  if (changed.length === 0) return;
  const fresh = changed.filter(({ isNew }) => isNew);
  const known = changed.filter(({ isNew }) => !isNew);
  // What closes makes room for what opens: there is one open alarm of an event.
  if (known.length > 0)
    await tx.query({
      name: 'alarms-update',
      text: updateRows,
      values: valuesOf(known.map(({ alarm }) => alarm)),
    });
  if (fresh.length > 0)
    await tx.query({
      name: 'alarms-insert',
      text: insertRows,
      values: valuesOf(fresh.map(({ alarm }) => alarm)),
    });
  await writeChanges(tx, changed);
  const gone = known.filter(({ alarm }) => isGone(alarm)).map(({ alarm }) => alarm.alarmId);
  if (gone.length > 0) await tx.query('delete from alarm where id = any($1::bigint[])', [gone]);
}

async function writeChanges(tx: Sql, all: readonly Changed[]): Promise<void> {
  const changed = all.filter(({ changes }) => changes.length > 0);
  if (changed.length === 0) return;
  await tx.query({
    name: 'alarms-changes',
    text: `
      insert into alarm_change (account_id, device_id, device_uuid, ts, body)
      select account_id, device_id, device_uuid, ms_to_timestamp(ts), body::json
        from unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::bigint[], ${documentsOf('$5')})
          as c (account_id, device_id, device_uuid, ts, body)`,
    values: [
      changed.map(({ alarm }) => alarm.device.accountId),
      changed.map(({ alarm }) => alarm.device.deviceId),
      changed.map(({ alarm }) => alarm.device.uuid),
      changed.map(({ ts }) => ts),
      jsonSequence(changed.map(bodyOf)),
    ],
  });
}

function bodyOf({ alarm, changes, around }: Changed): string {
  const { alarmId } = alarm;
  return JSON.stringify({
    change: foremost(changes),
    alarmId,
    alarm: toAlarmView(alarm, around),
  });
}
