import { z } from 'zod';
import { ChannelName, Severity } from '../contract/actions.ts';
import { EmailAddress, Labels } from '../contract/values.ts';
import type { Sql } from '../db/sql.ts';
import { timestamp } from '../http/schema.ts';
import { type GivenUp, isUnderWay } from '../notifications/outbox.ts';
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
  minSeverity: Severity;
  isConfirmed: boolean;
  isUnsubscribed: boolean;
  lastTs: number | null;
  lastState: string | null;
  lastReason: string | null;
};

const columns = `
  id as "contactId", uuid, kind, address, address_normal as normal, labels, after_ms as "afterMs",
  when_over as "whenOver", min_severity as "minSeverity", confirmed_at is not null as "isConfirmed",
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
  'kind' | 'address' | 'normal' | 'labels' | 'afterMs' | 'whenOver' | 'minSeverity'
> & { place: number };

/** Inserts new contacts and updates existing ones; returns the new ones. */
export async function saveContacts(
  tx: Sql,
  accountId: number,
  contacts: NewContact[],
): Promise<ContactRow[]> {
  const { rows } = await tx.query<ContactRow & { isNew: boolean }>(
    `insert into contact as c
       (account_id, kind, address, address_normal, place, labels, after_ms, when_over, min_severity)
     select $1, kind, address, normal, place, array(select json_array_elements_text(labels)),
            after_ms, when_over, min_severity
       from unnest($2::text[], $3::text[], $4::text[], $5::integer[], $6::json[], $7::bigint[],
                   $8::boolean[], $9::text[])
         as n (kind, address, normal, place, labels, after_ms, when_over, min_severity)
     on conflict (account_id, kind, address_normal) do update
       set address = excluded.address, place = excluded.place, labels = excluded.labels,
           after_ms = excluded.after_ms, when_over = excluded.when_over,
           min_severity = excluded.min_severity
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
      contacts.map(({ minSeverity }) => minSeverity),
    ],
  );
  return rows.filter(({ isNew }) => isNew);
}

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

/** Removes contacts and gives up their unsent messages, which it returns, but not those that are being delivered. */
export async function removeContacts(
  tx: Sql,
  contactIds: number[],
  nowTs: WallMs,
): Promise<GivenUp[]> {
  if (contactIds.length === 0) return [];
  await tx.query('delete from contact where id = any($1)', [contactIds]);
  const { rows } = await tx.query<GivenUp>(
    // Each state has an index of its own; one condition for both would read the messages of all accounts.
    `with unsent as (
       select id from notification where contact_id = any($1) and state = 'queued'
        union all
       select id from notification where contact_id = any($1) and state = 'planned'
     ), locked as (
       select id from notification n
        where id in (select id from unsent) and state in ('queued', 'planned')
          and not ${isUnderWay('n', '$2')}
        order by id for update
     )
     update notification n
        set state = 'failed', reason = 'contact-gone', changed_at = ms_to_timestamp($2)
       from locked l
      where n.id = l.id
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
  minSeverity: Severity.default('info').meta({
    description: 'Only events that are at least as bad (`actions.severity`).',
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

const hasEach = Object.fromEntries(
  ChannelName.options.map((name) => [name, z.boolean()]),
) as Record<ChannelName, z.ZodBoolean>;

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
  channels: z.object(hasEach).meta({
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
