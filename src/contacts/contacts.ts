import type { Sql } from '../db/sql.ts';
import type { ContactKind } from './schema.ts';

/** A contact as it is stored. `place`: where it stands in its list. */
export type ContactRow = {
  contactId: number;
  uuid: string;
  kind: ContactKind;
  address: string;
  normal: string;
  labels: string[];
  afterMs: number;
  whenOver: boolean;
  isConfirmed: boolean;
  isUnsubscribed: boolean;
  lastTs: number | null;
  lastState: string | null;
  lastReason: string | null;
};

const columns = `
  id as "contactId", uuid, kind, address, address_normal as normal, labels, after_ms as "afterMs",
  when_over as "whenOver", confirmed_at is not null as "isConfirmed",
  unsubscribed_at is not null as "isUnsubscribed", last_at as "lastTs", last_state as "lastState",
  last_reason as "lastReason"`;

/** The contacts of an account, in the order of their lists. */
export async function listContacts(sql: Sql, accountId: number): Promise<ContactRow[]> {
  const { rows } = await sql.query<ContactRow>(
    `select ${columns} from contact where account_id = $1 order by kind, place, id`,
    [accountId],
  );
  return rows;
}

/** A contact as it is to be. */
export type NewContact = Pick<
  ContactRow,
  'kind' | 'address' | 'normal' | 'labels' | 'afterMs' | 'whenOver'
> & { place: number };

/** Adds those that were not there, and changes the others; gives the contacts that were added. */
export async function saveContacts(
  tx: Sql,
  accountId: number,
  contacts: NewContact[],
): Promise<ContactRow[]> {
  const { rows } = await tx.query<ContactRow & { isNew: boolean }>(
    `insert into contact as c
       (account_id, kind, address, address_normal, place, labels, after_ms, when_over)
     select $1, kind, address, normal, place, array(select json_array_elements_text(labels)),
            after_ms, when_over
       from unnest($2::text[], $3::text[], $4::text[], $5::integer[], $6::json[], $7::bigint[],
                   $8::boolean[])
         as n (kind, address, normal, place, labels, after_ms, when_over)
     on conflict (account_id, kind, address_normal) do update
       set address = excluded.address, place = excluded.place, labels = excluded.labels,
           after_ms = excluded.after_ms, when_over = excluded.when_over
     returning ${columns}, xmax = 0 as "isNew"`,
    [
      accountId,
      contacts.map(({ kind }) => kind),
      contacts.map(({ address }) => address),
      contacts.map(({ normal }) => normal),
      contacts.map(({ place }) => place),
      contacts.map(({ labels }) => JSON.stringify(labels)),
      contacts.map(({ afterMs }) => afterMs),
      contacts.map(({ whenOver }) => whenOver),
    ],
  );
  return rows.filter(({ isNew }) => isNew);
}

/** A message that will not be sent, and the announcement that it belonged to; null: to none. */
export type EndedMessage = { alarmId: number | null; announcement: number | null };

/** The alarms that messages to these contacts are about, as far as they are not yet sent. */
export async function listAlarmsOf(tx: Sql, contactIds: number[]): Promise<number[]> {
  if (contactIds.length === 0) return [];
  const { rows } = await tx.query<{ alarmId: number }>(
    `select distinct alarm_id as "alarmId" from notification
      where contact_id = any($1) and state = 'queued' and alarm_id is not null`,
    [contactIds],
  );
  return rows.map(({ alarmId }) => alarmId);
}

/** Removes contacts, with what is not yet sent to them: that is given. */
export async function removeContacts(
  tx: Sql,
  contactIds: number[],
  nowMs: number,
): Promise<EndedMessage[]> {
  if (contactIds.length === 0) return [];
  await tx.query('delete from contact where id = any($1)', [contactIds]);
  const { rows } = await tx.query<EndedMessage>(
    // Each state has an index of its own; of both in one condition all messages of all accounts would be read.
    `with unsent as (
       select id from notification where contact_id = any($1) and state = 'queued'
        union all
       select id from notification where contact_id = any($1) and state = 'planned'
     )
     update notification n
        set state = 'failed', reason = 'contact-gone', changed_at = ms_to_timestamp($2)
       from unsent
      where n.id = unsent.id and n.state in ('queued', 'planned')
     returning n.alarm_id as "alarmId", n.announcement`,
    [contactIds, nowMs],
  );
  return rows;
}

/** Whose address a link is of; null where the contact is not there any more. */
export async function findAddress(sql: Sql, uuid: string): Promise<string | null> {
  const { rows } = await sql.query<{ address: string }>(
    `select address from contact where uuid = $1 and kind = 'email'`,
    [uuid],
  );
  return rows[0]?.address ?? null;
}

/**
 * Confirms an e-mail address, and gives whose it is; null where it is gone, or its owner unsubscribed after the
 * link was made.
 * A second time changes nothing.
 */
export async function confirmContact(
  sql: Sql,
  uuid: string,
  { madeTs, nowMs }: { madeTs: number; nowMs: number },
): Promise<number | null> {
  const { rows } = await sql.query<{ accountId: number }>(
    `update contact
        set confirmed_at = coalesce(confirmed_at, ms_to_timestamp($3))
      where uuid = $1 and kind = 'email'
        and (unsubscribed_at is null or unsubscribed_at < ms_to_timestamp($2))
     returning account_id as "accountId"`,
    [uuid, madeTs, nowMs],
  );
  return rows[0]?.accountId ?? null;
}

/** Nothing is sent there any more; a second time changes nothing. */
export async function unsubscribeContact(sql: Sql, uuid: string, nowMs: number): Promise<boolean> {
  const { rowCount } = await sql.query(
    `update contact
        set confirmed_at = null, unsubscribed_at = coalesce(unsubscribed_at, ms_to_timestamp($2))
      where uuid = $1 and kind = 'email'`,
    [uuid, nowMs],
  );
  return rowCount === 1;
}

/** False where the account has no such device. */
export async function saveLabels(
  sql: Sql,
  accountId: number,
  { uuid, labels }: { uuid: string; labels: string[] },
): Promise<boolean> {
  const { rowCount } = await sql.query(
    'update device set labels = $3 where account_id = $1 and uuid = $2',
    [accountId, uuid, labels],
  );
  return rowCount === 1;
}

/** A process renews what it has each minute. */
const seenWithinMs = 180_000;

/** How many push tokens an account has. */
export async function countPushTokens(sql: Sql, accountId: number): Promise<number> {
  const { rows } = await sql.query<{ count: number }>(
    `select count(distinct token)::integer as count
       from (select entry ->> 'token' as token from account
              cross join jsonb_array_elements(apn) as e (entry)
              where id = $1
              union all
             select token from push_token where account_id = $1) as t`,
    [accountId],
  );
  return rows[0]?.count ?? 0;
}

/** The channels that some process which delivers has. */
export async function listChannels(sql: Sql, nowMs: number): Promise<string[]> {
  const { rows } = await sql.query<{ channel: string }>(
    `select distinct unnest(channels) as channel
       from delivering_process where seen_at > ms_to_timestamp($1)`,
    [nowMs - seenWithinMs],
  );
  return rows.map(({ channel }) => channel);
}
