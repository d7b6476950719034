import type { Sql } from '../db/sql.ts';
import { mask } from './queries.ts';
import type { NotificationOutcome } from './schema.ts';

/** What became of a message about an alarm. */
export type AlarmDelivery = {
  kind: NotificationOutcome['kind'];
  recipient: string;
  type: string;
  state: NotificationOutcome['state'] | 'planned';
  changedTs: number;
  dueTs?: number;
  reason?: string;
};

/** Of one alarm so many are given, the newest ones. */
const mostPerAlarm = 50;

/** Messages about these alarms, newest first, by alarm. Recipients are masked. */
export async function listDeliveries(
  sql: Sql,
  alarmIds: readonly number[],
): Promise<Map<number, AlarmDelivery[]>> {
  type Row = Omit<AlarmDelivery, 'dueTs' | 'reason'> & {
    alarmId: number;
    dueTs: number | null;
    reason: string | null;
  };
  const { rows } = await sql.query<Row>({
    name: 'notifications-of-alarms',
    text: `
      select wanted.id as "alarmId", n.kind, n.recipient, n.type, n.state, n.reason,
             n.changed_at as "changedTs", case when n.state = 'planned' then n.due_at end as "dueTs"
        from unnest($1::bigint[]) as wanted (id)
       cross join lateral (
         select * from notification
          where alarm_id = wanted.id
          order by id desc
          limit ${mostPerAlarm}) as n`,
    values: [alarmIds],
  });
  const found = new Map<number, AlarmDelivery[]>();
  for (const { alarmId, kind, recipient, type, state, changedTs, dueTs, reason } of rows) {
    const delivery: AlarmDelivery = {
      kind,
      recipient: mask(kind, recipient),
      type,
      state,
      changedTs,
      ...(dueTs === null ? {} : { dueTs }),
      ...(reason === null ? {} : { reason }),
    };
    found.set(alarmId, [...(found.get(alarmId) ?? []), delivery]);
  }
  return found;
}
