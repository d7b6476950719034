import type { Sql } from '../db/sql.ts';
import { countersOf } from './allot.ts';
import type { MessageQuotas } from './settings.ts';
import type { RecipientKey } from './turn.ts';

/** A message that was counted on a day (UTC, `2026-11-22`), or not at all. */
export type CountedMessage = Pick<RecipientKey, 'accountId' | 'kind' | 'recipient'> & {
  countedOn: string | null;
};

// What a message is counted by does not depend on how much of it there may be.
const unlimited: MessageQuotas = {
  messagesPerDay: Infinity,
  messagesPerRecipient: Infinity,
  webhooksPerDay: Infinity,
  smsPerDay: Infinity,
  smsPerNumber: Infinity,
  smsPerInstallation: Infinity,
  confirmationsPerNetwork: Infinity,
  confirmationsPerInstallation: Infinity,
};

/** Messages that will not be sent count no longer, where the day that they were counted on lasts. */
export async function giveBack(tx: Sql, messages: readonly CountedMessage[]): Promise<void> {
  const counters = messages.flatMap(({ accountId, kind: channel, recipient, countedOn }) =>
    countedOn === null
      ? []
      : countersOf({ accountId, channel, recipient }, () => unlimited).map((counter) => ({
          ...counter,
          countedOn,
        })),
  );
  if (counters.length === 0) return;
  // Locked in the order of `lockCounts`: nobody waits in a circle.
  await tx.query(
    `with less as (
       select kind, account_id, key, day, count(*) as n
         from unnest($1::text[], $2::bigint[], $3::text[], $4::date[])
           as l (kind, account_id, key, day)
        group by 1, 2, 3, 4
     ), locked as (
       select c.kind, c.account_id, c.key, l.n
         from message_count c
         join less l on l.kind = c.kind and l.account_id = c.account_id and l.key = c.key
                    and l.day = c.day
        order by c.kind collate "C", c.account_id, c.key collate "C"
          for update of c
     )
     update message_count c
        set used = greatest(0, c.used - l.n)
       from locked l
      where c.kind = l.kind and c.account_id = l.account_id and c.key = l.key`,
    [
      counters.map(({ kind }) => kind),
      counters.map(({ accountId }) => accountId),
      counters.map(({ key }) => key),
      counters.map(({ countedOn }) => countedOn),
    ],
  );
}
