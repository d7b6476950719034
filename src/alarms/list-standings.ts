import type { AlarmTold } from '../contract/alarm.ts';
import type { NotNotified } from '../contract/not-notified.ts';
import type { Sql } from '../db/sql.ts';

/** What an event's alarm is at, and what keeps it quiet. Ms. */
export type Standing = {
  state?: 'open' | 'acknowledged';
  told?: AlarmTold;
  notNotified?: NotNotified;
  snoozedUntilTs?: number;
};

type Row = {
  key: string;
  is_open: boolean;
  acknowledged_at: number | null;
  told: AlarmTold | null;
  not_notified: NotNotified | null;
  until_at: number | null;
};

/** Events of a device that have an open alarm, or a snooze of that profile, by "puId/stId/evId". */
export async function listStandings(
  db: Sql,
  { deviceId, pId }: { deviceId: number; pId: string },
): Promise<Map<string, Standing>> {
  const { rows } = await db.query<Row>(
    `
      select concat_ws('/', pu_id, st_id, ev_id) as key,
             a.id is not null as is_open, a.acknowledged_at, a.told, a.not_notified, s.until_at
        from (select * from alarm where device_id = $1 and closed_at is null) as a
        full join (select * from alarm_snooze where device_id = $1 and p_id = $2) as s
       using (pu_id, st_id, ev_id)`,
    [deviceId, pId],
  );
  return new Map(rows.map((row) => [row.key, toStanding(row)]));
}

function toStanding(row: Row): Standing {
  const snooze = row.until_at === null ? {} : { snoozedUntilTs: row.until_at };
  if (!row.is_open) return snooze;
  return {
    state: row.acknowledged_at === null ? 'open' : 'acknowledged',
    ...(row.told === null ? {} : { told: row.told }),
    ...(row.not_notified === null ? {} : { notNotified: row.not_notified }),
    ...snooze,
  };
}

/** Until when a device is muted, ms; undefined where it is not. */
export async function findMute(db: Sql, deviceId: number): Promise<number | undefined> {
  const { rows } = await db.query<{ until_at: number }>(
    'select until_at from device_mute where device_id = $1',
    [deviceId],
  );
  return rows[0]?.until_at;
}
