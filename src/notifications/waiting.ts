import type { Sql } from '../db/sql.ts';
import type { WallMs } from '../lib/clock-readings.ts';
import type { RecipientKey } from './channels/channel.ts';
import { channels } from './channels/channels.ts';

/*
 * When messages to a person are gathered into a summary. After the first few within ten minutes the others wait: for
 * one minute, and while there is more each time, for twice as long as the last time, up to ten minutes. If nothing
 * waited when that time was over, it is a minute again. A summary counts as one message for the limits of its day,
 * however many it includes.
 */

/** After this many messages to a person within this time, further ones are gathered. */
export const gatherAfter = 5;
const recentMs = 600_000;
const shortestMs = 60_000;
const longestMs = 600_000;
/** A summary that is sent within this time after the last wait goes on with it. */
const goesOnMs = 60_000;

/**
 * Until when the messages of a recipient are gathered, in SQL: null if it had few lately. `recent`: when it received
 * the last ones, newest first, and this one. `told` and `now`: parameters.
 */
export const gathersUntil = (recent: string, told: string, now: string): string => `
  case when (${recent})[${gatherAfter}] > ms_to_timestamp(${now}::bigint - ${recentMs})
       then ms_to_timestamp(${now}::bigint) + interval '1 ms' * (
         case when ${told} > 1 and gathers_until > ms_to_timestamp(${now}::bigint - ${goesOnMs})
              then least(${longestMs}, greatest(${shortestMs},
                     2000 * extract(epoch from gathers_until - recent[1])))
              else ${shortestMs} end) end`;

/** As SQL: a process ended during the last attempt. One that has failed is due later than that was written. */
export const isCutOff = (row: string): string =>
  `(${row}.attempts > 0 and ${row}.due_at <= ${row}.changed_at)`;

/** Messages that wait for a person: how many, as far as that matters, and whether they will be gathered. */
export type Waiting = { count: number; isGathering: boolean };

/** Whether a further message joins those that wait: it is sent with one of them, and counts with that. */
export const joins = ({ count, isGathering }: Waiting): boolean =>
  count > gatherAfter || (isGathering && count > 0);

/** Whatever comes next is gathered. */
export const gathering = (): Waiting => ({ count: gatherAfter + 1, isGathering: true });

/** Only messages to people are gathered. Text messages cost money, each: their limits hold for each. */
export const isGathered = ({ kind }: Pick<RecipientKey, 'kind'>): boolean =>
  !channels[kind].isForPrograms && channels[kind].reaches !== 'numbers';

/** How many messages may join others on one day, for each that an account may send: what is stored has a bound. */
export const joiningPerMessage = 5;

const nameOf = ({ contactId, accountId, kind, recipient }: RecipientKey): string =>
  contactId === null ? `${accountId} ${kind} ${recipient}` : String(contactId);

/** What waits for those of these recipients that are people. The result belongs to the caller, who may count on. */
export async function findWaiting(
  tx: Sql,
  recipients: Iterable<RecipientKey>,
  nowTs: WallMs,
): Promise<(recipient: RecipientKey) => Waiting | undefined> {
  const asked = new Map<string, RecipientKey>();
  for (const one of recipients) if (isGathered(one)) asked.set(nameOf(one), one);
  const all = [...asked.values()];
  if (all.length === 0) return () => undefined;
  const most = `limit ${gatherAfter + 1}`;
  const { rows } = await tx.query<Waiting & { nth: number }>({
    name: 'outbox-find-waiting',
    text: `
      select r.nth, coalesce(c.gathers_until, t.gathers_until) > ms_to_timestamp($5) is true as "isGathering",
             case when r.contact_id is null
                  then (select count(*) from (
                          select from notification n
                           where n.state = 'queued' and n.contact_id is null and n.due_at is not null
                             and n.account_id = r.account_id and n.kind = r.kind and n.recipient = r.recipient
                           ${most}) as w)
                  else (select count(*) from (
                          select from notification n
                           where n.state = 'queued' and n.contact_id = r.contact_id ${most}) as w)
                     + (select count(*) from (
                          select from notification n
                           where n.state = 'planned' and n.contact_id = r.contact_id ${most}) as w)
              end as count
        from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) with ordinality
          as r (contact_id, account_id, kind, recipient, nth)
        left join contact c on c.id = r.contact_id
        left join recipient_turn t on r.contact_id is null and t.account_id = r.account_id
                                  and t.kind = r.kind and t.recipient = r.recipient`,
    values: [
      all.map(({ contactId }) => contactId),
      all.map(({ accountId }) => accountId),
      all.map(({ kind }) => kind),
      all.map(({ recipient }) => recipient),
      nowTs,
    ],
  });
  const waiting = new Map(
    rows.map(({ nth, ...one }) => [nameOf(all[nth - 1] as RecipientKey), one] as const),
  );
  return (recipient) => waiting.get(nameOf(recipient));
}
