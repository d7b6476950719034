import { setImmediate } from 'node:timers/promises';
import type { NewNotification } from '../contract/notification.ts';
import type { Sql } from '../db/sql.ts';
import { counterName } from './allot.ts';
import type { Allotted, Counter } from './allot.ts';
import { bodyOf, titleOf, type Wording } from './compose.ts';
import { isLimit, reasons } from './reasons.ts';
import type { Unsent } from './sort-out.ts';
import { dueChannel, type MessageType, type NoticeData } from './turn.ts';

/** Of what is not sent, and of any title, only so much is kept. */
const maxText = 1_000;

const day = (parameter: string) => `(ms_to_timestamp(${parameter}) at time zone 'UTC')::date`;

/**
 * Keeps others from counting until the transaction ends; gives what is used today, by `counterName`. Always in
 * the same order, so that nobody waits in a circle.
 */
export async function lockCounts(
  tx: Sql,
  counters: readonly Counter[],
  nowMs: number,
): Promise<Map<string, number>> {
  if (counters.length === 0) return new Map();
  const { rows } = await tx.query<Counter & { used: number }>({
    name: 'outbox-lock-counts',
    text: `
      insert into message_count as c (kind, account_id, key, day, used)
      select kind, account_id, key, ${day('$4')}, 0
        from unnest($1::text[], $2::bigint[], $3::text[]) as asked (kind, account_id, key)
       order by kind collate "C", account_id, key collate "C"
      on conflict (kind, account_id, key) do update
        set used = case when c.day < excluded.day then 0 else c.used end,
            day = greatest(c.day, excluded.day)
      returning kind, account_id as "accountId", key, used`,
    values: [
      counters.map(({ kind }) => kind),
      counters.map(({ accountId }) => accountId),
      counters.map(({ key }) => key),
      nowMs,
    ],
  });
  return new Map(rows.map((row) => [counterName(row), row.used]));
}

export type Decided = {
  queued: readonly Allotted[];
  unsent: readonly Unsent[];
  /** How much more is counted than before; these are locked. */
  counted: readonly (Counter & { more: number })[];
  wordingOf: (notification: NewNotification) => Wording;
  nowMs: number;
};

/** A statement brings so many: to put their texts together is a piece of its own. */
const rowsAtOnce = 100;

/** Writes what was decided, and wakes those that deliver once it is committed. */
export async function writeNotifications(tx: Sql, decided: Decided): Promise<void> {
  const { queued, unsent } = decided;
  const perNotification = createTexts(decided.wordingOf);
  for (let from = 0; from < Math.max(1, queued.length); from += rowsAtOnce) {
    if (from > 0) await setImmediate();
    const isFirst = from === 0;
    await writeSome(tx, perNotification, {
      ...decided,
      queued: queued.slice(from, from + rowsAtOnce),
      unsent: isFirst ? unsent : [],
      counted: isFirst ? decided.counted : [],
    });
  }
}

/** What all recipients of a notification are told alike, made once. */
type Texts = { title: string; body: string; lastBody: string | null; engine: string };

function createTexts(wordingOf: Decided['wordingOf']) {
  const known = new Map<NewNotification, Texts>();
  const of = (notification: NewNotification): Texts => {
    const texts = known.get(notification);
    if (texts) return texts;
    const wording = wordingOf(notification);
    const made = {
      title: cut(titleOf(notification, wording)),
      body: bodyOf(notification, wording, false),
      lastBody: null,
      engine: JSON.stringify(notification.event.cause.engine),
    };
    known.set(notification, made);
    return made;
  };
  return {
    of,
    bodyOf({ notification, isLast }: Allotted): string {
      const texts = of(notification);
      if (!isLast) return texts.body;
      return (texts.lastBody ??= bodyOf(notification, wordingOf(notification), true));
    },
  };
}

async function writeSome(
  tx: Sql,
  texts: ReturnType<typeof createTexts>,
  { queued, unsent, counted, nowMs }: Decided,
): Promise<void> {
  if (queued.length === 0 && unsent.length === 0) return;
  const all = [...queued, ...unsent];
  await tx.query({
    name: 'outbox-write-notifications',
    text: `
      with asked as (
        select * from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[],
                             $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::integer[],
                             $17::bigint[], $18::text[], $20::bigint[], $21::integer[], $22::text[],
                             $23::bigint[])
          with ordinality
          as a (account_id, device_id, kind, recipient, title, body, engine, state, reason, error, count,
                contact_id, data, alarm_id, announcement, type, due_ms, place)
      ), counted as (
        update message_count c
           set used = c.used + m.more
          from unnest($12::text[], $13::bigint[], $14::text[], $15::bigint[])
            as m (kind, account_id, key, more)
         where c.kind = m.kind and c.account_id = m.account_id and c.key = m.key
      ), queued as (
        insert into notification
          (account_id, device_id, kind, recipient, title, body, engine, state, contact_id, data, alarm_id,
           announcement, type, counted_on, due_at, created_at, changed_at)
        select account_id, device_id, kind, recipient, title, body, engine::json, state, contact_id,
               data::json, alarm_id, announcement, type, ${day('$16')},
               ms_to_timestamp(due_ms), ms_to_timestamp($16), ms_to_timestamp($16)
          from asked where state in ('queued', 'planned') order by place
        returning id
      ), unsent as (
        insert into notification as n
          (account_id, device_id, kind, recipient, title, body, engine, state, reason, error, count,
           unsent_day, created_at, changed_at)
        select account_id, device_id, kind, recipient, title, body, engine::json, state, reason, error,
               count, ${day('$16')}, ms_to_timestamp($16), ms_to_timestamp($16)
          from asked where state not in ('queued', 'planned') order by device_id, kind, reason
        on conflict (device_id, kind, reason, unsent_day) where unsent_day is not null do update
          set count = least(n.count::bigint + excluded.count, 2147483647),
              changed_at = excluded.changed_at
      ), told as (
        select pg_notify($19, '') from queued limit 1
      )
      select count(*) from told`,
    values: [
      all.map(({ notification }) => notification.accountId),
      all.map(({ notification }) => notification.deviceId),
      all.map(({ channel }) => channel),
      all.map(({ recipient }) => recipient),
      all.map(({ notification }) => texts.of(notification).title),
      [
        ...queued.map(texts.bodyOf),
        ...unsent.map(({ notification }) => cut(texts.of(notification).body)),
      ],
      all.map(({ notification }) => texts.of(notification).engine),
      [
        ...queued.map(({ dueMs }) => (dueMs === undefined ? 'queued' : 'planned')),
        ...unsent.map(({ reason }) => (isLimit(reason) ? 'held-back' : 'failed')),
      ],
      [...queued.map(() => null), ...unsent.map(({ reason }) => reason)],
      [...queued.map(() => null), ...unsent.map(({ reason }) => reasons[reason])],
      [...queued.map(() => 1), ...unsent.map(({ count }) => count)],
      counted.map(({ kind }) => kind),
      counted.map(({ accountId }) => accountId),
      counted.map(({ key }) => key),
      counted.map(({ more }) => more),
      nowMs,
      [...queued.map(({ contactId }) => contactId), ...unsent.map(() => null)],
      [...queued.map(dataOf), ...unsent.map(() => null)],
      dueChannel,
      all.map(({ notification }) => notification.about?.alarmId ?? null),
      all.map(({ notification }) => notification.about?.announcement ?? null),
      [...queued.map(typeOf), ...unsent.map(() => 'notice')],
      [...queued.map(({ dueMs }) => dueMs ?? nowMs), ...unsent.map(() => nowMs)],
    ],
  });
}

const typeOf = ({ notification, dueMs }: Allotted): MessageType =>
  dueMs === undefined ? (notification.about?.type ?? 'notice') : 'escalated';

/** Of a webhook, and of an alarm, which may be told of again when it is over: others are told in words. */
function dataOf({ channel, notification }: Allotted): string | null {
  if (channel !== 'webhook' && (notification.about?.alarmId ?? null) === null) return null;
  const { engine, senses } = notification.event.cause;
  const data: NoticeData = { engine, senses };
  return JSON.stringify(data);
}

const cut = (text: string) => text.slice(0, maxText).toWellFormed();
