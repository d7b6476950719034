import { setImmediate } from 'node:timers/promises';
import type { Sql } from '../db/sql.ts';
import { slicesOf } from '../lib/text.ts';
import type { Decided } from './enqueue-queries.ts';
import { dueChannel, type NoticeData } from './turn.ts';

/** A message to a contact that no firing asks for; `title` and `body` are empty where they are made later. */
export type NewDirect = {
  accountId: number;
  channel: 'email' | 'webhook';
  type: 'confirm' | 'test' | 'notice' | 'closed';
  contactId: number;
  recipient: string;
  title: string;
  body: string;
  /** Of an alarm. */
  about?: { deviceId: number; alarmId: number; announcement: number; data: NoticeData };
};

/** A statement brings so many: to write their texts down is a piece of its own. */
const rowsAtOnce = 100;

/** Writes messages to contacts that no firing asks for, and what they count for. */
export async function writeDirect(
  tx: Sql,
  messages: NewDirect[],
  { counted, nowMs }: Pick<Decided, 'counted' | 'nowMs'>,
): Promise<void> {
  for (const [n, some] of slicesOf(messages, rowsAtOnce).entries()) {
    if (n > 0) await setImmediate();
    await writeSome(tx, some, { counted: n === 0 ? counted : [], nowMs });
  }
}

async function writeSome(
  tx: Sql,
  messages: NewDirect[],
  { counted, nowMs }: Pick<Decided, 'counted' | 'nowMs'>,
): Promise<void> {
  await tx.query(
    `with counted as (
       update message_count c
          set used = c.used + m.more
         from unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[])
           as m (kind, account_id, key, more)
        where c.kind = m.kind and c.account_id = m.account_id and c.key = m.key
     ), told as (select pg_notify($13, ''))
     insert into notification
       (account_id, kind, type, contact_id, recipient, title, body, device_id, alarm_id, announcement, data,
        engine, counted_on, due_at, created_at, changed_at)
     select account_id, kind, type, contact_id, recipient, title, body, device_id, alarm_id, announcement,
            data::json, data::json -> 'engine', (ms_to_timestamp($12) at time zone 'UTC')::date,
            ms_to_timestamp($12), ms_to_timestamp($12), ms_to_timestamp($12)
       from told
      cross join unnest($5::bigint[], $6::text[], $7::text[], $8::bigint[], $9::text[], $10::text[],
                        $11::text[], $14::bigint[], $15::bigint[], $16::integer[], $17::text[])
         as n (account_id, kind, type, contact_id, recipient, title, body, device_id, alarm_id,
               announcement, data)`,
    [
      counted.map(({ kind }) => kind),
      counted.map(({ accountId }) => accountId),
      counted.map(({ key }) => key),
      counted.map(({ more }) => more),
      messages.map(({ accountId }) => accountId),
      messages.map(({ channel }) => channel),
      messages.map(({ type }) => type),
      messages.map(({ contactId }) => contactId),
      messages.map(({ recipient }) => recipient),
      messages.map(({ title }) => title),
      messages.map(({ body }) => body),
      nowMs,
      dueChannel,
      messages.map(({ about }) => about?.deviceId ?? null),
      messages.map(({ about }) => about?.alarmId ?? null),
      messages.map(({ about }) => about?.announcement ?? null),
      messages.map(({ about }) => (about ? JSON.stringify(about.data) : null)),
    ],
  );
}
