import type { Sql } from '../../db/sql.ts';

/** Neither its device nor its account was removed. */
const isThere = `
  exists (select from device d join account a on a.id = d.account_id
           where d.id = alarm.device_id and a.removed_at is null)`;

/** Devices that have an alarm whose time has come: to tell it, to look at it again, or to close it. */
export async function listDueDevices(
  sql: Sql,
  { nowTs, limit }: { nowTs: number; limit: number },
): Promise<number[]> {
  const { rows } = await sql.query<{ id: number }>({
    name: 'alarms-due-devices',
    text: `
      select device_id as id
        from (select device_id from alarm
               where closed_at is null and next_at <= ms_to_timestamp($1) and ${isThere}
               order by next_at limit $2) as due
       union
      select device_id
        from (select device_id from alarm
               where closed_at is null
                 and (ends_at is not null or expires_at is not null)
                 and least(ends_at, expires_at) <= ms_to_timestamp($1) and ${isThere}
               order by least(ends_at, expires_at) limit $2) as over
       order by id
       limit $2`,
    values: [nowTs, limit],
  });
  return rows.map(({ id }) => id);
}

/**
 * Of these the devices that no other transaction holds, kept until this one ends: another process has the
 * others, or their measurements are being stored, which may change what is due.
 */
export async function claimDevices(tx: Sql, deviceIds: readonly number[]): Promise<number[]> {
  const { rows } = await tx.query<{ id: number }>({
    name: 'alarms-claim-devices',
    text: `
      select id from device where id = any($1::bigint[]) and account_id is not null order by id
         for no key update skip locked`,
    values: [deviceIds],
  });
  return rows.map(({ id }) => id);
}

/** When the timer looks next: nothing that anybody is told of. */
export type NextLook = {
  alarmId: number;
  nextTs: number | null;
  lookedTs: number | null;
  /** Why nobody was told. */
  notNotified: string | null;
};

export async function saveLooks(tx: Sql, looks: readonly NextLook[]): Promise<void> {
  if (looks.length === 0) return;
  await tx.query({
    name: 'alarms-save-looks',
    text: `
      update alarm a
         set next_at = ms_to_timestamp(l.next_ts), looked_ts = l.looked_ts,
             not_notified = l.not_notified
        from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[])
          as l (id, next_ts, looked_ts, not_notified)
       where a.id = l.id`,
    values: [
      looks.map(({ alarmId }) => alarmId),
      looks.map(({ nextTs }) => nextTs),
      looks.map(({ lookedTs }) => lookedTs),
      looks.map(({ notNotified }) => notNotified),
    ],
  });
}

/**
 * An account has other recipients: what nobody could be told of is tried at once. What began in a backlog goes
 * on waiting for a fresh measurement.
 */
export async function wakeAlarms(tx: Sql, accountId: number, nowTs: number): Promise<void> {
  await tx.query(
    `with waiting as (
       select id from alarm
        where account_id = $1 and closed_at is null and announced_at is null
          and acknowledged_at is null and tells = 'alarm' and not waits_for_fresh
          and next_at > ms_to_timestamp($2)
        order by id for no key update
     )
     update alarm a set next_at = ms_to_timestamp($2) from waiting w where a.id = w.id`,
    [accountId, nowTs],
  );
}
