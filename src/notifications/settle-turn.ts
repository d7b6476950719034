import type { Sql } from '../db/sql.ts';
import { giveBack } from './give-back.ts';
import type { GivenUp } from './planned.ts';
import type { Reason } from './reasons.ts';
import type { Turn } from './turn.ts';

export type TurnOutcome = {
  state: 'queued' | 'sent' | 'logged' | 'failed';
  reason: Reason | null;
  error: string | null;
  via: string;
  nowMs: number;
  /** When it is tried again, where it is. */
  dueMs: number;
  /** So long the recipient asked to be left alone. */
  restMs: number;
  /** Whether the recipient itself failed; null: it was not asked. */
  hasFailed: boolean | null;
};

/** A recipient that failed so often in a row is left alone for so long. */
const restAfter = 5;
export const restAfterFailuresMs = 900_000;

/** After so many messages to a person within so long, further ones are gathered. */
const gatherAfter = 10;
const gatherMs = 600_000;

/** The alarms that a message is about, and those that went out with it. */
export async function listAlarmIds(tx: Sql, { id, alarmId }: Turn): Promise<number[]> {
  const { rows } = await tx.query<{ alarmId: number }>(
    `select distinct alarm_id as "alarmId" from notification
      where grouped_in = $1 and alarm_id is not null`,
    [id],
  );
  return [...new Set([...rows.map((row) => row.alarmId), ...(alarmId === null ? [] : [alarmId])])];
}

/**
 * Writes down how an attempt ended, also of the messages that went out with it, and gives the turn back. What
 * failed for good no longer counts for the limits of its day. Gives the announcements that it was about.
 */
export async function settleTurn(tx: Sql, turn: Turn, outcome: TurnOutcome): Promise<GivenUp[]> {
  const { state, reason, error, via, nowMs, dueMs } = outcome;
  const { rows } = await tx.query<GivenUp & { countedOn: string | null }>(
    `update notification
        set state = $2, reason = $3, error = $4, via = $5, changed_at = ms_to_timestamp($6),
            due_at = ms_to_timestamp($7)
      where (id = $1 or grouped_in = $1) and state = 'queued'
     returning counted_on::text as "countedOn", alarm_id as "alarmId", announcement`,
    [turn.id, state, reason, error, via, nowMs, dueMs],
  );
  await giveTurnBack(tx, turn, outcome, rows.length);
  if (state === 'failed')
    await giveBack(
      tx,
      rows.map(({ countedOn }) => ({ ...turn, countedOn })),
    );
  return rows;
}

/** `told`: of how many messages the recipient now knows. */
async function giveTurnBack(
  tx: Sql,
  turn: Turn,
  outcome: TurnOutcome,
  told: number,
): Promise<void> {
  const { contactId, accountId, kind, recipient, type } = turn;
  const { state, reason, nowMs, restMs, hasFailed } = outcome;
  const isOver = state === 'sent' || state === 'logged';
  const isCounted = isOver && kind !== 'webhook' && type !== 'confirm' && type !== 'test';
  // Ten of the newest are enough, also where one message told of forty.
  const recent = `(array_fill(ms_to_timestamp($2), array[$3::integer]) || recent)[1:${gatherAfter}]`;
  const changes = `
    busy_until = null,
    failures = case when $1::boolean then failures + 1
                    when $1::boolean is null then failures else 0 end,
    rests_until = case when $1::boolean and failures + 1 >= ${restAfter}
                       then ms_to_timestamp($2::bigint + greatest(${restAfterFailuresMs}, $4))
                       when $4 > 0 then ms_to_timestamp($2::bigint + $4) end,
    recent = ${recent},
    gathers_until = case when $3 = 0 then gathers_until
                         when (${recent})[${gatherAfter}] > ms_to_timestamp($2::bigint - ${gatherMs})
                         then ms_to_timestamp($2::bigint + ${gatherMs}) end`;
  const values = [hasFailed, nowMs, isCounted ? Math.min(told, gatherAfter) : 0, restMs];
  if (contactId === null)
    await tx.query(
      `update recipient_turn set ${changes}
        where account_id = $5 and kind = $6 and recipient = $7`,
      [...values, accountId, kind, recipient],
    );
  else
    await tx.query(
      `update contact
          set ${changes}, last_at = ms_to_timestamp($2), last_state = $6, last_reason = $7
        where id = $5`,
      [...values, contactId, state, reason],
    );
}

/** Recipients that are no contacts, and have had nothing for a day, need no row. */
export async function forgetTurns(sql: Sql, beforeMs: number): Promise<void> {
  await sql.query(
    `delete from recipient_turn
      where served_at < ms_to_timestamp($1)
        and coalesce(rests_until, '-infinity') < ms_to_timestamp($1)
        and coalesce(busy_until, '-infinity') < ms_to_timestamp($1)`,
    [beforeMs],
  );
}
