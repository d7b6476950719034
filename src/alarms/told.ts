import { z } from 'zod';
import { ChannelName } from '../contract/actions.ts';
import { NotNotified } from '../contract/event.ts';
import type { Sql } from '../db/sql.ts';
import { timestamp } from '../http/schema.ts';
import type { WallMs } from '../lib/clock-readings.ts';
import { channels } from '../notifications/channels/channels.ts';
import { readUsed } from '../notifications/counts.ts';
import type { QuotasOf } from '../notifications/daily-limits.ts';
import { nextDay } from '../notifications/text.ts';
import { type AlarmSearch, matching, valuesOf } from './search.ts';

// Who knows of the alarms that are open now, who will hear of them and when, and who will not and why.

const alarms = z.int().min(0);

/** Of open alarms: of how many each recipient knows. Each alarm counts once for each recipient. */
export const AlarmsTold = z
  .object({
    recipients: z.array(
      z
        .object({
          kind: ChannelName,
          recipient: z.string().meta({
            description: 'As in the notifications of a device: never the whole address.',
          }),
          told: alarms.meta({ description: 'By a message of its own, or a summary.' }),
          waiting: alarms.meta({ description: 'A message waits to be sent, or for a summary.' }),
          summaryTs: timestamp.optional().meta({
            description: 'When the next summary is sent, if messages wait for one.',
          }),
          planned: alarms.meta({ description: 'A message waits for `afterMs`.' }),
          failed: alarms.meta({ description: 'Every message has failed.' }),
          untold: alarms.meta({
            description: 'Others were told, but there is no message to this recipient.',
          }),
          limitUntilTs: timestamp.optional().meta({
            description: 'The limits of the day are used up until then: nothing more is sent.',
          }),
        })
        .meta({ id: 'AlarmRecipient' }),
    ),
    nobody: z
      .array(
        z
          .object({ reason: NotNotified.nullable(), count: alarms })
          .meta({ id: 'AlarmsNobodyKnows' }),
      )
      .meta({
        description:
          'Of how many nobody was told, by `notNotified`. Null: every message has failed so far, or messages are neither ' +
          'asked for nor sent.',
      }),
  })
  .meta({ id: 'AlarmsTold' });
export type AlarmsTold = z.infer<typeof AlarmsTold>;

type RecipientRow = Pick<
  AlarmsTold['recipients'][number],
  'kind' | 'recipient' | 'told' | 'waiting' | 'planned' | 'failed' | 'untold'
> & { gathersUntilTs: number | null };

/** Who knows of the matching alarms that are open. */
export async function listTold(
  sql: Sql,
  search: AlarmSearch,
  { quotasOf, nowTs }: { quotasOf: QuotasOf; nowTs: WallMs },
): Promise<AlarmsTold> {
  const { accountId } = search;
  const open = { ...search, state: 'open' as const };
  const [{ rows }, { rows: nobody }] = await Promise.all([
    sql.query<RecipientRow>(
      `with ${matching(open)}, alarms as (
         select m.id, m.rank, m.labels, a.told <> 'none' as is_told,
                coalesce(a.actions #>> '{cloud,sendPush}' = 'true', false) as asks_contacts
           from matching m join alarm a on a.id = m.id
       ), known as (
         select n.alarm_id, n.contact_id, n.kind, n.recipient,
                bool_or(n.state in ('sent', 'logged')) as told, bool_or(n.state = 'queued') as waiting,
                bool_or(n.state = 'planned') as planned, bool_or(n.state = 'failed') as failed
           from alarms m
           join notification n on n.alarm_id = m.id
          where n.type in ('opened', 'repeated', 'escalated') and n.unsent_day is null
          group by 1, 2, 3, 4
       ), counted as (
         select contact_id, kind, recipient, count(*) filter (where told) as told,
                count(*) filter (where not told and waiting) as waiting,
                count(*) filter (where not told and not waiting and planned) as planned,
                count(*) filter (where not told and not waiting and not planned and failed) as failed
           from known group by 1, 2, 3
       ), suited as (
         select c.id, c.kind, c.address, c.gathers_until,
                (select count(*) from alarms m
                  where m.is_told and m.asks_contacts and (c.labels = '{}' or m.labels && c.labels)
                    and m.rank >= case c.min_severity when 'info' then 0 when 'warning' then 1 else 2 end) as alarms
           from contact c
          where c.account_id = $1 and (c.kind = 'webhook' or c.confirmed_at is not null)
       )
       select coalesce(k.kind, s.kind) as kind, coalesce(k.recipient, s.address) as recipient,
              coalesce(k.told, 0) as told, coalesce(k.waiting, 0) as waiting,
              coalesce(k.planned, 0) as planned, coalesce(k.failed, 0) as failed,
              greatest(0, coalesce(s.alarms, 0) - coalesce(k.told + k.waiting + k.planned + k.failed, 0)) as untold,
              coalesce(s.gathers_until, t.gathers_until) as "gathersUntilTs"
         from counted k
         full join suited s on s.id = k.contact_id
         left join recipient_turn t on k.contact_id is null and t.account_id = $1 and t.kind = k.kind
                                   and t.recipient = k.recipient
        order by 1, 2`,
      valuesOf(open),
    ),
    sql.query<AlarmsTold['nobody'][number]>(
      `with ${matching(open)}
       select case when a.told = 'none' then a.not_notified end as reason, count(*) as count
         from matching m join alarm a on a.id = m.id
        where a.told in ('none', 'withdrawn') and a.tells = 'alarm'
        group by 1 order by 2 desc`,
      valuesOf(open),
    ),
  ]);
  const recipients = await Promise.all(
    rows.map(async ({ gathersUntilTs, ...row }) => {
      const { kind: channel, recipient, waiting } = row;
      const counted = { accountId, channel, recipient };
      const limits = await readUsed(sql, counted, { quotasOf, nowTs });
      const isFull = limits.some(({ used, limit }) => used >= limit);
      return {
        ...row,
        recipient: channels[channel].mask(recipient),
        ...(waiting > 0 && gathersUntilTs !== null && gathersUntilTs > nowTs
          ? { summaryTs: gathersUntilTs }
          : {}),
        ...(isFull ? { limitUntilTs: nextDay(nowTs) } : {}),
      };
    }),
  );
  return { recipients, nobody };
}
