import type { DoneBy } from '../audit/entry.ts';
import { insertEntry } from '../audit/audit.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { isPrivateHost } from '../lib/address.ts';
import { quotaExceeded } from '../quotas/exceeded.ts';
import type { LimitsOf } from '../quotas/overrides.ts';
import { lockUsage } from '../quotas/quotas.ts';
import {
  type ContactRow,
  type EndedMessage,
  listAlarmsOf,
  listContacts,
  type NewContact,
  removeContacts,
  saveContacts,
} from './contacts.ts';
import { normalAddress, type ContactKind, type ContactsUpdate } from './schema.ts';

/** Queues messages to contacts within the caller's transaction, as far as the day's limits go. */
export type SendToContacts = (
  tx: Sql,
  accountId: number,
  messages: {
    type: 'confirm' | 'test';
    contact: Pick<ContactRow, 'contactId' | 'kind' | 'address'>;
  }[],
  /** Of the client who asks. */
  address: string,
) => Promise<{ state: 'queued' | 'held-back'; reason?: string }[]>;

/** What a change of contacts means for alarms, within its transaction. */
export type AlarmsOfContacts = {
  /** Nobody else settles messages about these alarms until the transaction ends. */
  lock: (tx: Sql, alarmIds: readonly number[]) => Promise<void>;
  /** Messages of these announcements will not be sent. */
  ended: (tx: Sql, messages: readonly EndedMessage[], nowMs: number) => Promise<void>;
  /** What nobody could be told of is tried again. */
  wake: (tx: Sql, accountId: number, nowMs: number) => Promise<void>;
};

export type ReplaceDeps = {
  db: Database;
  limitsOf: LimitsOf;
  sendToContacts: SendToContacts;
  alarms: AlarmsOfContacts;
  isPrivateAllowed: boolean;
};

/**
 * Makes the lists of an account's contacts what they are to be; each e-mail address that is new is asked
 * for confirmation. Throws `quota-exceeded` where there would be more than before and than there may be.
 */
export async function replaceContacts(
  { db, limitsOf, sendToContacts, alarms, isPrivateAllowed }: ReplaceDeps,
  accountId: number,
  { update, by }: { update: ContactsUpdate; by: DoneBy },
): Promise<void> {
  if (!isPrivateAllowed) refusePrivate(update);
  const wanted = contactsOf(update);
  await db.transaction(async (tx) => {
    await lockUsage(tx, accountId);
    const before = await listContacts(tx, accountId);
    const limit = limitsOf(accountId).contacts;
    if (wanted.length > limit && wanted.length > before.length)
      throw quotaExceeded({ quota: 'contacts', limit, used: before.length });
    const keys = new Set(wanted.map(keyOf));
    const gone = before.filter((contact) => !keys.has(keyOf(contact)));
    const ids = gone.map(({ contactId }) => contactId);
    await alarms.lock(tx, await listAlarmsOf(tx, ids));
    await alarms.ended(tx, await removeContacts(tx, ids, by.ts), by.ts);
    const added = await saveContacts(tx, accountId, wanted);
    const messages = added
      .filter(({ kind }) => kind === 'email')
      .map((contact) => ({ type: 'confirm' as const, contact }));
    await sendToContacts(tx, accountId, messages, by.actor.address ?? '');
    await alarms.wake(tx, accountId, by.ts);
    const details = { changed: ['contacts'] };
    await insertEntry(tx, accountId, { kind: 'settings-changed', ...by, details });
  });
}

const keyOf = ({ kind, normal }: { kind: ContactKind; normal: string }) => `${kind} ${normal}`;

function contactsOf({ emails, webhooks }: ContactsUpdate): NewContact[] {
  const entry = (
    kind: ContactKind,
    address: string,
    rest: ContactsUpdate['emails'][number],
    place: number,
  ) => {
    const { labels, afterMs, whenOver } = rest;
    return {
      kind,
      address,
      normal: normalAddress(kind, address),
      labels,
      afterMs,
      whenOver,
      place,
    };
  };
  return [
    ...emails.map((one, place) => entry('email', one.address, one, place)),
    ...webhooks.map(({ url, ...rest }, place) =>
      entry('webhook', url, { address: url, ...rest }, place),
    ),
  ];
}

/** A name that leads to a private address is found out when it is connected to. */
function refusePrivate({ webhooks }: ContactsUpdate): void {
  const problems = webhooks.flatMap(({ url }, index) =>
    isPrivateHost(URL.parse(url)?.hostname ?? '')
      ? [
          {
            path: `/webhooks/${index}/url`,
            message:
              'expected an address of the public internet, where the operator allows no other',
          },
        ]
      : [],
  );
  if (problems.length > 0)
    throw new DomainError('invalid-input', 'The request is not valid.', { problems });
}
