import type { Closing } from '../contract/alarm.ts';
import type { Database } from '../db/database.ts';
import { kindOf } from '../db/errors.ts';
import type { Sql } from '../db/sql.ts';
import { messageOf as textOf } from '../lib/thrown.ts';
import type { Clock, WallMs } from '../lib/clock-readings.ts';
import {
  listBundled,
  listOldest,
  setBundleAside,
  takeOver,
  unbundleThese,
  writeBundles,
} from './bundles.ts';
import type { NoticeData } from './channels/channel.ts';
import { allot, type QuotasOf } from './daily-limits.ts';
import { lockCountsOf } from './counts.ts';
import { type NewDirect, writeDirect } from './enqueue.ts';
import { dropPlanned, holdMessages } from './outbox.ts';
import { findWaiting, gathering } from './waiting.ts';
import { describeOver, describeTime, type Over, wordsOf } from './text.ts';

// What becomes of the messages about alarms that were acknowledged, snoozed or closed, and of those that are bundled.

/** Alarms whose planned messages are dropped, and those of which people are told that they are over. */
type Ended = { dropped: readonly number[]; closed: readonly ClosedAlarm[] };

/**
 * Drops planned messages of alarms, and queues messages that alarms are over, in the caller's transaction. It locks all
 * counters at once, so call it once in a transaction, for all of its alarms.
 */
export async function endMessages(
  tx: Sql,
  { dropped, closed }: Ended,
  { quotasOf, nowTs }: { quotasOf: QuotasOf; nowTs: WallMs },
): Promise<void> {
  const alarmIds = [...new Set([...dropped, ...closed.map(({ alarmId }) => alarmId)])];
  if (alarmIds.length === 0) return;
  const options = { quotasOf, nowTs };
  await lockCountsOf(tx, await holdMessages(tx, alarmIds), options);
  await dropPlanned(tx, dropped);
  await notifyResolved(tx, closed, options);
}

/** A closed alarm. `lastedWithState`: it lasted as long as its device was in a state. */
export type ClosedAlarm = Over & {
  alarmId: number;
  closedBy: Closing;
  lastedWithState: boolean;
};

/** A contact that was notified of an alarm, and what it received. */
type NotifiedContact = {
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
  /** It was told of the alarm by a summary. */
  isByCount: boolean;
};

/** Who was told by a summary is told of ends together, too: they wait for others, ms. */
const waitForOthersMs = 60_000;

/**
 * Queues the message that an alarm is over to contacts with `whenOver` that were notified of it, within the day's
 * limits. If a person, another profile or a configuration closed it, only webhooks receive the message.
 */
export async function notifyResolved(
  tx: Sql,
  closed: readonly ClosedAlarm[],
  { quotasOf, nowTs }: { quotasOf: QuotasOf; nowTs: WallMs },
): Promise<void> {
  if (closed.length === 0) return;
  const now = await bundleOver(tx, closed);
  const contacts = await listNotifiedContacts(tx, now);
  if (contacts.length === 0) return;
  const countedIn = ({ accountId, kind: channel, address: recipient }: NotifiedContact) => ({
    accountId,
    channel,
    recipient,
  });
  const keyIn = (contact: NotifiedContact) => ({ ...contact, recipient: contact.address });
  const counts = await lockCountsOf(tx, contacts.map(countedIn), { quotasOf, nowTs });
  const waitingFor = await findWaiting(tx, contacts.map(keyIn), nowTs);
  const byId = new Map(closed.map((one) => [one.alarmId, one]));
  const bodies = new Map<string, string>();
  const bodyFor = ({ language, timeZone }: NotifiedContact, closed: ClosedAlarm): string => {
    const { beganTs, overTs, filledTs, closedTs } = closed;
    const key = `${beganTs} ${overTs} ${filledTs} ${closedTs} ${language} ${timeZone}`;
    const body = bodies.get(key) ?? resolvedBody(closed, { language, timeZone, nowTs });
    bodies.set(key, body);
    return body;
  };
  const messages = contacts.flatMap((contact) => {
    const one = byId.get(contact.alarmId);
    const { isByCount } = contact;
    const waiting = isByCount ? gathering() : waitingFor(keyIn(contact));
    const taken = allot(countedIn(contact), waiting, counts.used, quotasOf);
    if (!one || 'full' in taken) return [];
    const dueMs = isByCount ? nowTs + waitForOthersMs : nowTs;
    return [{ ...messageOf(contact, one, bodyFor(contact, one)), joins: taken.joins, dueMs }];
  });
  await writeDirect(tx, messages, { counted: counts.listCounted(), nowTs });
}

/** Bundles that alarms are over, of those of which messages are bundled. Returns the others. */
async function bundleOver(tx: Sql, closed: readonly ClosedAlarm[]): Promise<ClosedAlarm[]> {
  const bundled = await listBundled(
    tx,
    closed.map(({ alarmId }) => alarmId),
  );
  const known = new Map(bundled.map((one) => [one.alarmId, one]));
  const over = closed.flatMap((one) => {
    const of = known.get(one.alarmId);
    return of ? [{ ...of, holds: 'over' as const, body: JSON.stringify(one) }] : [];
  });
  await writeBundles(tx, over);
  return closed.filter(({ alarmId }) => !known.has(alarmId));
}

type Unbundling = {
  quotasOf: QuotasOf;
  clock: Clock;
  /** A bundle was set aside. */
  onError: (error: unknown) => void;
  /** Stops between two transactions. */
  signal?: AbortSignal;
};

/** Makes messages of all that is bundled (`bundles.ts`), in the order in which it was bundled. */
export async function unbundle(
  db: Database,
  { quotasOf, clock, onError, signal }: Unbundling,
): Promise<void> {
  const work = {
    messages: unbundleThese,
    over: async (tx: Sql, ids: readonly number[]) =>
      notifyResolved(tx, await takeOver<ClosedAlarm>(tx, ids), { quotasOf, nowTs: clock() }),
  };
  for (const holds of ['messages', 'over'] as const)
    for (;;) {
      if (signal?.aborted) return;
      const ids = await listOldest(db, holds);
      if (ids.length === 0) break;
      const run = (some: readonly number[]) => db.transaction((tx) => work[holds](tx, some));
      await run(ids).catch(async (error: unknown) => {
        if (!isOfData(error)) throw error;
        for (const id of ids)
          await run([id]).catch(async (own: unknown) => {
            if (!isOfData(own)) throw own;
            await setBundleAside(db, id, textOf(own));
            onError(own);
          });
      });
    }
}

/** It would fail again, and says nothing about other rows. */
const isOfData = (error: unknown) => kindOf(error) === 'unstorable';

function resolvedBody(
  closed: Over,
  { language, timeZone, nowTs }: Pick<NotifiedContact, 'language' | 'timeZone'> & { nowTs: WallMs },
): string {
  const words = wordsOf(language);
  return describeOver(closed, (ts) => describeTime(ts, nowTs, timeZone, words), words);
}

function messageOf(
  contact: NotifiedContact,
  closed: ClosedAlarm,
  body: string,
): Omit<NewDirect, 'joins' | 'dueMs'> {
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
      data: { ...data, closedBy: closed.closedBy, beganTs: closed.beganTs, overTs: closed.overTs },
    },
  };
}

/** Each contact once, with the first message that it received. */
async function listNotifiedContacts(
  tx: Sql,
  closed: readonly ClosedAlarm[],
): Promise<NotifiedContact[]> {
  const { rows } = await tx.query<NotifiedContact>({
    name: 'outbox-list-told-contacts',
    text: `
      select distinct on (n.alarm_id, c.id) n.alarm_id as "alarmId", n.announcement,
             c.id as "contactId", c.kind, c.address, c.account_id as "accountId",
             n.device_id as "deviceId", n.title, n.data, a.language, a.time_zone as "timeZone",
             n.grouped_in is not null
               or exists (select from notification g where g.grouped_in = n.id) as "isByCount"
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
