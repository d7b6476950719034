import type { Sql } from '../db/sql.ts';
import type { SenseWordsBySId } from './text.ts';

const today = (parameter: string) => `(ms_to_timestamp(${parameter}) at time zone 'UTC')::date`;

/** A contact that messages may be sent to now. */
export type ContactOf = {
  contactId: number;
  kind: 'email' | 'webhook';
  address: string;
  labels: string[];
  /** It is told so much later, if the alarm is then still open. */
  afterMs: number;
  /** The alarms, of those asked for, that it is or was told of so. */
  escalatedIds: number[];
};

/** An account that has something to say, and what it has said today; others may be counting meanwhile. */
export type Sender = {
  accountId: number;
  maySendSms: boolean;
  /** Each once: those of `apn` in the account's order, then those of sessions. */
  tokens: string[];
  /** Webhooks and confirmed addresses. */
  contacts: ContactOf[];
  timeZone: string | null;
  language: string | null;
  messagesUsed: number;
  webhooksUsed: number;
  smsUsed: number;
};

const used = (kind: string) => `
  coalesce((select used from message_count
             where kind = '${kind}' and account_id = account.id and key = ''
               and day >= ${today('$2')}), 0)`;

export async function findSenders(
  tx: Sql,
  accountIds: number[],
  nowMs: number,
  alarmIds: readonly number[] = [],
): Promise<Map<number, Sender>> {
  const { rows } = await tx.query<Sender>({
    name: 'outbox-find-senders',
    text: `
      select account.id as "accountId", may_send_sms as "maySendSms", time_zone as "timeZone", language,
             (select coalesce(json_agg(token order by nth), '[]')
                from (select token, min(nth) as nth
                        from (select entry ->> 'token' as token, nth
                                from jsonb_array_elements(apn) with ordinality as e (entry, nth)
                               union all
                              select p.token, 1000 + extract(epoch from p.added_at)
                                from push_token p
                               where p.account_id = account.id) as every
                       where token is not null
                       group by token) as t) as tokens,
             (select coalesce(json_agg(json_build_object('contactId', c.id, 'kind', c.kind,
                                                         'address', c.address, 'labels', c.labels,
                                                         'afterMs', c.after_ms,
                                                         'escalatedIds', array(
                                         select n.alarm_id from notification n
                                          where n.alarm_id = any ($3) and n.contact_id = c.id
                                            and n.type = 'escalated' and c.after_ms > 0
                                            and n.state in ('planned', 'queued', 'sent', 'logged')))
                                       order by c.kind, c.place, c.id), '[]')
                from contact c
               where c.account_id = account.id
                 and (c.kind = 'webhook' or c.confirmed_at is not null)) as contacts,
             ${used('account')} as "messagesUsed", ${used('webhook')} as "webhooksUsed",
             ${used('sms')} as "smsUsed"
        from account
       where account.id = any ($1)`,
    values: [accountIds, nowMs, alarmIds],
  });
  return new Map(rows.map((row) => [row.accountId, row]));
}

/** What messages about a device say of it. `senses`: those that were asked for and have words. */
export type DeviceWords = {
  deviceId: number;
  name: string | null;
  labels: string[];
  senses: SenseWordsBySId;
};

/**
 * Escapes in stored JSON that PostgreSQL has no text for: reading them would fail the transaction of the
 * measurements. The first versions stored them; such a device is told of without words for its senses.
 */
const unreadable = String.raw`\\u(0000|d[89a-f])`;

const arrayAt = (path: string) =>
  `case when json_typeof(${path}) = 'array' then ${path} else '[]' end`;

/** Of the devices that messages are about, with the senses that these name. */
export async function listDeviceWords(
  tx: Sql,
  deviceIds: number[],
  sIds: string[],
): Promise<Map<number, DeviceWords>> {
  const { rows } = await tx.query<DeviceWords>({
    name: 'outbox-list-device-words',
    text: `
      select id as "deviceId", name, labels,
             (select coalesce(json_object_agg(sense ->> 'sId', sense), '{}')
                from json_array_elements(${arrayAt("configuration -> 'module'")}) as m (module)
               cross join json_array_elements(${arrayAt("module -> 'senses'")}) as s (sense)
               where sense ->> 'sId' = any ($2)) as senses
        from (select id, name, labels,
                     case when configuration::text ~ '${unreadable}' then '{}'::json
                          else configuration end as configuration
                from device
               where id = any ($1)) as d`,
    values: [deviceIds, sIds],
  });
  return new Map(rows.map((row) => [row.deviceId, row]));
}

/** How many recipients an account has for what events push. */
export async function countRecipients(
  sql: Sql,
  accountId: number,
): Promise<{ tokens: number; emails: number; unconfirmed: number; webhooks: number }> {
  const { rows } = await sql.query<{
    tokens: number;
    emails: number;
    unconfirmed: number;
    webhooks: number;
  }>(
    `select coalesce((select jsonb_array_length(apn) from account where id = $1), 0) +
              (select count(*) from push_token where account_id = $1)::integer as tokens,
            count(*) filter (where kind = 'email' and confirmed_at is not null) as emails,
            count(*) filter (where kind = 'email' and confirmed_at is null) as unconfirmed,
            count(*) filter (where kind = 'webhook') as webhooks
       from contact where account_id = $1`,
    [accountId],
  );
  return rows[0] ?? { tokens: 0, emails: 0, unconfirmed: 0, webhooks: 0 };
}
