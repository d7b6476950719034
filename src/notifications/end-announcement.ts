import type { Sql } from '../db/sql.ts';
import type { AlarmPort } from './alarm-port.ts';
import type { GivenUp } from './planned.ts';

/**
 * Looks, in the transaction in which a message ended, whether its announcement has come to somebody or to an
 * end. To be called with the alarm locked: of two messages that end at once the later one sees both. Repeats
 * and escalations neither make an announcement nor take one back.
 */
export async function endAnnouncement(
  tx: Sql,
  { alarmId, announcement }: GivenUp,
  { alarms, nowTs }: { alarms: AlarmPort; nowTs: number },
): Promise<void> {
  if (alarmId === null || announcement === null) return;
  const { rows } = await tx.query<{ waiting: number; told: number; all: number }>(
    `select count(*) filter (where state = 'queued') as waiting,
            count(*) filter (where state in ('sent', 'logged')) as told, count(*) as all
       from notification
      where alarm_id = $1 and announcement = $2 and type = 'opened'
        and state in ('queued', 'sent', 'logged', 'failed') and unsent_day is null`,
    [alarmId, announcement],
  );
  const [{ waiting, told, all } = { waiting: 0, told: 0, all: 0 }] = rows;
  const of = { announcement, nowTs };
  if (told > 0) await alarms.noteTold(tx, alarmId, of);
  else if (waiting === 0 && all > 0) await alarms.takeBack(tx, alarmId, of);
}
