import { createHmac } from 'node:crypto';
import { z } from 'zod';
import { EmailAddress, Labels } from '../contract/values.ts';
import type { Sql } from '../db/sql.ts';
import { timestamp } from '../http/schema.ts';
import { isGenuine, makeLinkToken as makeToken, readLinkClaim } from '../lib/crypto.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** A contact as it is stored. `place`: its position in its list. */
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

/** A contact to be stored. */
export type NewContact = Pick<
  ContactRow,
  'kind' | 'address' | 'normal' | 'labels' | 'afterMs' | 'whenOver'
> & { place: number };

/** Inserts new contacts and updates existing ones; returns the new ones. */
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

/** A message that will not be sent, and the announcement that it belonged to; null if to none. */
export type EndedMessage = { alarmId: number | null; announcement: number | null };

/** The alarms of messages to these contacts that are not yet sent. */
export async function listAlarmsOf(tx: Sql, contactIds: number[]): Promise<number[]> {
  if (contactIds.length === 0) return [];
  const { rows } = await tx.query<{ alarmId: number }>(
    `select distinct alarm_id as "alarmId" from notification
      where contact_id = any($1) and state = 'queued' and alarm_id is not null`,
    [contactIds],
  );
  return rows.map(({ alarmId }) => alarmId);
}

/** Removes contacts and gives up their unsent messages, which it returns. */
export async function removeContacts(
  tx: Sql,
  contactIds: number[],
  nowTs: WallMs,
): Promise<EndedMessage[]> {
  if (contactIds.length === 0) return [];
  await tx.query('delete from contact where id = any($1)', [contactIds]);
  const { rows } = await tx.query<EndedMessage>(
    // Each state has an index of its own; one condition for both would read the messages of all accounts.
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
    [contactIds, nowTs],
  );
  return rows;
}

/** The address that a link belongs to; null if the contact no longer exists. */
export async function findAddress(sql: Sql, uuid: string): Promise<string | null> {
  const { rows } = await sql.query<{ address: string }>(
    `select address from contact where uuid = $1 and kind = 'email'`,
    [uuid],
  );
  return rows[0]?.address ?? null;
}

/**
 * Confirms an e-mail address and returns its account; null if the address is gone, or its owner unsubscribed after the
 * link was made. Idempotent.
 */
export async function confirmContact(
  sql: Sql,
  uuid: string,
  { madeTs, nowTs }: { madeTs: number; nowTs: WallMs },
): Promise<number | null> {
  const { rows } = await sql.query<{ accountId: number }>(
    `update contact
        set confirmed_at = coalesce(confirmed_at, ms_to_timestamp($3))
      where uuid = $1 and kind = 'email'
        and (unsubscribed_at is null or unsubscribed_at < ms_to_timestamp($2))
     returning account_id as "accountId"`,
    [uuid, madeTs, nowTs],
  );
  return rows[0]?.accountId ?? null;
}

/** Nothing is sent to the address any more. Idempotent. */
export async function unsubscribeContact(sql: Sql, uuid: string, nowTs: WallMs): Promise<boolean> {
  const { rowCount } = await sql.query(
    `update contact
        set confirmed_at = null, unsubscribed_at = coalesce(unsubscribed_at, ms_to_timestamp($2))
      where uuid = $1 and kind = 'email'`,
    [uuid, nowTs],
  );
  return rowCount === 1;
}

/** Returns false if the account has no such device. */
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

/** A process renews its announcement every minute. */
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

/** The channels of all processes that deliver. */
export async function listChannels(sql: Sql, nowTs: WallMs): Promise<string[]> {
  const { rows } = await sql.query<{ channel: string }>(
    `select distinct unnest(channels) as channel
       from delivering_process where seen_at > ms_to_timestamp($1)`,
    [nowTs - seenWithinMs],
  );
  return rows.map(({ channel }) => channel);
}

/** What a link in a mail does; a token for one purpose does not work for the other. */
export type LinkPurpose = 'confirm' | 'unsubscribe';

const dayMs = 86_400_000;
/** People unsubscribe long after a mail arrived, and must still be able to. */
const lifetimesMs: Record<LinkPurpose, number> = { confirm: 7 * dayMs, unsubscribe: 400 * dayMs };

/** A token for a link: the contact's uuid and the time it expires, signed for this purpose only. */
export function makeContactToken(
  keys: readonly Buffer[],
  purpose: LinkPurpose,
  { contactUuid: uuid, nowTs }: { contactUuid: string; nowTs: WallMs },
): string {
  return makeToken(keys, purpose, { uuid, expiresTs: nowTs + lifetimesMs[purpose] });
}

/** The contact's uuid and when the token was made (ms); null if it has expired or is for another purpose. */
export function readLinkToken(
  keys: readonly Buffer[],
  purpose: LinkPurpose,
  { token, nowTs }: { token: string; nowTs: WallMs },
): { contactUuid: string; madeTs: number } | null {
  // A link to unsubscribe works even if a clock that ran ahead made it.
  const longestMs = purpose === 'unsubscribe' ? Infinity : lifetimesMs[purpose];
  const claim = readLinkClaim(token, nowTs, longestMs);
  if (!claim || !isGenuine(keys, purpose, token)) return null;
  return { contactUuid: claim.uuid, madeTs: claim.expiresTs - lifetimesMs[purpose] };
}

const maxAfterMs = 7 * 86_400_000;
/** Far more than the quota `contacts` allows anybody; bounds the work that one request can cause. */
const maxEntries = 1_000;

const WebhookUrl = z
  .url({ protocol: /^https?$/, error: 'expected an http or https URL' })
  .max(2_048)
  .refine((text) => !text.includes('\0') && text.isWellFormed(), 'expected text without NUL')
  .refine((text) => {
    const url = URL.parse(text);
    return url?.username === '' && url.password === '';
  }, 'expected a URL without user name and password');

const suiting = {
  labels: Labels.default([]).meta({
    description: 'Only devices that have one of these labels. Empty: all devices.',
  }),
  afterMs: z
    .int()
    .min(0)
    .max(maxAfterMs)
    .default(0)
    .meta({
      description:
        '0: notified at once. Otherwise the contact is notified only of alarms, once each, and ' +
        'only if the alarm is still open and not acknowledged this many milliseconds after ' +
        'people were notified of it.',
    }),
  whenOver: z
    .boolean()
    .default(false)
    .meta({
      description:
        'Also notify the contact when an alarm that it was notified of ends. Webhooks receive ' +
        'every closing; e-mail is sent only when the condition no longer holds.',
    }),
};

const EmailContact = z
  .object({ address: EmailAddress, ...suiting })
  .meta({ id: 'EmailContactEntry' });

const WebhookContact = z
  .object({ url: WebhookUrl, ...suiting })
  .meta({ id: 'WebhookContactEntry' });

/** The body of PUT /v2/accounts/contacts: it replaces both lists. */
export const ContactsUpdate = z
  .object({
    emails: z.array(EmailContact).max(maxEntries).default([]),
    webhooks: z.array(WebhookContact).max(maxEntries).default([]),
  })
  .superRefine(({ emails, webhooks }, context) => {
    const lists = {
      emails: emails.map(({ address }) => normalAddress('email', address)),
      webhooks: webhooks.map(({ url }) => normalAddress('webhook', url)),
    };
    for (const [list, keys] of Object.entries(lists)) {
      const member = list === 'emails' ? 'address' : 'url';
      for (const [index, key] of keys.entries())
        if (keys.indexOf(key) < index)
          context.addIssue({
            code: 'custom',
            path: [list, index, member],
            message: 'is already in the list',
          });
    }
  });
export type ContactsUpdate = z.infer<typeof ContactsUpdate>;

export type ContactKind = 'email' | 'webhook';

/** The canonical form of an address, which identifies a contact. */
export function normalAddress(kind: ContactKind, address: string): string {
  return kind === 'email' ? address.toLowerCase() : (URL.parse(address)?.href ?? address);
}

const lastDelivery = z
  .object({ timestamp, state: z.string(), reason: z.string().optional() })
  .meta({ id: 'LastDelivery' })
  .optional()
  .meta({ description: 'The result of the last attempt to deliver to it.' });

/** The answer of GET and PUT /v2/accounts/contacts. */
export const Contacts = z.object({
  emails: z.array(
    EmailContact.extend({
      confirmed: z
        .boolean()
        .meta({ description: 'Nothing else is sent to the address before it is confirmed.' }),
      unsubscribed: z
        .boolean()
        .optional()
        .meta({
          description:
            'The owner of the address has unsubscribed. After the contact is removed and added ' +
            'again, it can be confirmed.',
        }),
      last: lastDelivery,
    }).meta({ id: 'EmailContact' }),
  ),
  webhooks: z.array(
    WebhookContact.extend({
      webhookId: z.guid(),
      secret: z.string().meta({
        description: 'The secret that signs messages, as in Standard Webhooks.',
        example: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
      }),
      last: lastDelivery,
    }).meta({ id: 'WebhookContact' }),
  ),
  pushTokens: z.int().meta({
    description: 'How many phones apps have added: in `apn` of Update Account, and one by one.',
  }),
  channels: z
    .object({ push: z.boolean(), sms: z.boolean(), email: z.boolean(), webhook: z.boolean() })
    .meta({
      id: 'Channels',
      description:
        'The channels that a running delivery process has. SMS that only go to the log do not count.',
    }),
  timestamp,
});
export type Contacts = z.infer<typeof Contacts>;

/** The answer of POST /v2/accounts/contacts/test. */
export const TrialAnswer = z.object({
  messages: z.array(
    z
      .object({
        address: z.string().optional(),
        url: z.string().optional(),
        type: z.enum(['test', 'confirm']).meta({
          description: 'confirm: the link is sent again to an unconfirmed address.',
        }),
        state: z.enum(['queued', 'held-back']),
        reason: z.string().optional(),
      })
      .meta({ id: 'TrialMessage' }),
  ),
  timestamp,
});
export type TrialAnswer = z.infer<typeof TrialAnswer>;

/** The body of PUT /v2/devices/{deviceAuthUuid}/labels. */
export const LabelsUpdate = z.object({ labels: Labels });

const secretBytes = 24;

/**
 * The secrets that sign messages to a webhook, as Standard Webhooks writes them (`whsec_` and base64); its account sees
 * the first. They are derived, so none is stored: after a change of SECRET, the one from SECRET_PREVIOUS signs as well.
 */
export function webhookSecrets(keys: readonly Buffer[], webhookId: string): string[] {
  return keys.map((key) => {
    const digest = createHmac('sha256', key).update(webhookId).digest();
    return `whsec_${digest.subarray(0, secretBytes).toString('base64')}`;
  });
}
