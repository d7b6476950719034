import type { Sql } from '../db/sql.ts';
import { giveBack, type CountedMessage } from './give-back.ts';
import { dueChannel } from './turn.ts';

/**
 * Drops what is planned for these alarms: they were acknowledged, snoozed or closed. It counts for no limit any
 * more. What is queued goes out, and says so.
 */
export async function dropPlanned(tx: Sql, alarmIds: readonly number[]): Promise<void> {
  if (alarmIds.length === 0) return;
  const { rows } = await tx.query<CountedMessage>(
    `delete from notification
      where alarm_id = any ($1) and state = 'planned'
     returning account_id as "accountId", kind, recipient, counted_on::text as "countedOn"`,
    [alarmIds],
  );
  await giveBack(tx, rows);
}

/** Puts off what is planned for devices until their mute ends. */
export async function putOffPlanned(
  tx: Sql,
  deviceIds: readonly number[],
  untilMs: number,
): Promise<void> {
  await tx.query(
    `update notification set due_at = greatest(due_at, ms_to_timestamp($2))
      where device_id = any($1::bigint[]) and state = 'planned'`,
    [deviceIds, untilMs],
  );
}

/** Queues what was planned for now. Its day is that on which it is due. */
export async function queuePlanned(sql: Sql, nowMs: number): Promise<void> {
  await sql.query(
    `with due as (
       select id from notification
        where state = 'planned' and due_at <= ms_to_timestamp($1)
        order by due_at limit 1000 for update skip locked
     ), queued as (
       update notification n
          set state = 'queued', created_at = n.due_at, changed_at = ms_to_timestamp($1)
         from due where n.id = due.id
       returning n.id
     )
     select pg_notify($2, '') from queued limit 1`,
    [nowMs, dueChannel],
  );
}

/** What ended without an attempt: its alarm may have nobody left who is told. */
export type GivenUp = { alarmId: number | null; announcement: number | null };

/** Gives up what waited too long for its turn, and what is for a contact that is gone. */
export async function giveUpOld(sql: Sql, beforeMs: number, nowMs: number): Promise<GivenUp[]> {
  const { rows } = await sql.query<GivenUp & CountedMessage>(
    `update notification n
        set state = 'failed', changed_at = ms_to_timestamp($2),
            reason = case when n.state = 'queued' and n.created_at < ms_to_timestamp($1)
                          then 'too-late' else 'contact-gone' end
      where n.state in ('queued', 'planned') and n.due_at is not null
        and ((n.state = 'queued' and n.created_at < ms_to_timestamp($1))
             or (n.contact_id is not null
                 and not exists (select from contact c where c.id = n.contact_id)))
     returning alarm_id as "alarmId", announcement, account_id as "accountId", kind, recipient,
               counted_on::text as "countedOn"`,
    [beforeMs, nowMs],
  );
  await giveBack(sql, rows);
  return rows.map(({ alarmId, announcement }) => ({ alarmId, announcement }));
}
