import type { Sql } from '../db/sql.ts';
import { takeRoom, type QuotasOf } from './allot.ts';
import { lockCountsOf } from './enqueue.ts';
import { writeDirect, type NewDirect } from './direct-queries.ts';
import type { NoticeData } from './turn.ts';
import { describeTime } from './words/when.ts';
import { wordsOf } from './words/words-of.ts';

/** An alarm that closed; `lastedWithState`: it stood for a state that the device was in. */
export type ClosedAlarm = {
  alarmId: number;
  closedBy: string;
  closedTs: number;
  lastedWithState: boolean;
};

/** A contact that was told of an alarm, and what it was told. */
type ToldContact = {
  alarmId: number;
  announcement: number;
  contactId: number;
  kind: 'email' | 'webhook';
  address: string;
  accountId: number;
  deviceId: number;
  title: string;
  data: NoticeData;
  language: string | null;
  timeZone: string | null;
};

/**
 * Queues the message that an alarm is over for contacts with `whenOver` that were told of it, as far as the
 * day's limits go. What a person, another profile or a configuration closed is told to webhooks only.
 */
export async function tellOver(
  tx: Sql,
  closed: readonly ClosedAlarm[],
  { quotasOf, nowMs }: { quotasOf: QuotasOf; nowMs: number },
): Promise<void> {
  if (closed.length === 0) return;
  const contacts = await listToldContacts(tx, closed);
  if (contacts.length === 0) return;
  const countedIn = ({ accountId, kind: channel, address: recipient }: ToldContact) => ({
    accountId,
    channel,
    recipient,
  });
  const counts = await lockCountsOf(tx, contacts.map(countedIn), { quotasOf, nowMs });
  const byId = new Map(closed.map((one) => [one.alarmId, one]));
  const bodies = new Map<string, string>();
  const bodyFor = ({ language, timeZone }: ToldContact, { closedTs }: ClosedAlarm): string => {
    const key = `${closedTs} ${language} ${timeZone}`;
    const body = bodies.get(key) ?? bodyOf(closedTs, { language, timeZone, nowMs });
    bodies.set(key, body);
    return body;
  };
  const messages = contacts.flatMap((contact) => {
    const one = byId.get(contact.alarmId);
    const room = takeRoom(countedIn(contact), counts.used, quotasOf);
    return one && !('full' in room) ? [messageOf(contact, one, bodyFor(contact, one))] : [];
  });
  await writeDirect(tx, messages, { counted: counts.listCounted(), nowMs });
}

function bodyOf(
  closedTs: number,
  { language, timeZone, nowMs }: Pick<ToldContact, 'language' | 'timeZone'> & { nowMs: number },
): string {
  const words = wordsOf(language);
  return words.overSince(describeTime(closedTs, nowMs, timeZone, words));
}

function messageOf(contact: ToldContact, closed: ClosedAlarm, body: string): NewDirect {
  const { accountId, kind, contactId, address, title, language, data } = contact;
  const words = wordsOf(language);
  return {
    accountId,
    channel: kind,
    type: 'closed',
    contactId,
    recipient: address,
    title: words.overTitle(title),
    body,
    about: {
      deviceId: contact.deviceId,
      alarmId: contact.alarmId,
      announcement: contact.announcement,
      data: { ...data, closedBy: closed.closedBy },
    },
  };
}

/** Each once, with the first that it was told. */
async function listToldContacts(tx: Sql, closed: readonly ClosedAlarm[]): Promise<ToldContact[]> {
  const { rows } = await tx.query<ToldContact>({
    name: 'outbox-list-told-contacts',
    text: `
      select distinct on (n.alarm_id, c.id) n.alarm_id as "alarmId", n.announcement,
             c.id as "contactId", c.kind, c.address, c.account_id as "accountId",
             n.device_id as "deviceId", n.title, n.data, a.language, a.time_zone as "timeZone"
        from unnest($1::bigint[], $2::boolean[]) as l (alarm_id, is_over)
        join notification n on n.alarm_id = l.alarm_id
        join contact c on c.id = n.contact_id
        join account a on a.id = c.account_id
       where n.type in ('opened', 'repeated', 'escalated') and n.state in ('queued', 'sent', 'logged')
         and n.data is not null and c.when_over
         and (c.kind = 'webhook' or (l.is_over and c.confirmed_at is not null))
       order by n.alarm_id, c.id, n.id`,
    values: [closed.map(({ alarmId }) => alarmId), closed.map(isOver)],
  });
  return rows;
}

const isOver = ({ closedBy, lastedWithState }: ClosedAlarm): boolean =>
  closedBy === 'cleared' || (closedBy === 'left-state' && lastedWithState);
