import type { Sql } from '../db/sql.ts';
import { mailboxOf } from '../lib/mailbox.ts';
import { takeRoom, type Asking, type Counted, type QuotasOf } from './allot.ts';
import { lockCountsOf } from './enqueue.ts';
import { writeDirect, type NewDirect } from './direct-queries.ts';
import { findSenders } from './sender-queries.ts';
import type { Reason } from './reasons.ts';
import { wordsOf } from './words/words-of.ts';

/** A message to a contact that no event asks for. */
export type DirectMessage = {
  type: 'confirm' | 'test';
  contact: { contactId: number; kind: 'email' | 'webhook'; address: string };
};

export type DirectOptions = {
  quotasOf: QuotasOf;
  nowMs: number;
  /** Where the request came from, as addresses are counted. */
  network: string;
  /** Anybody can register: accounts confirm their own address before they ask many others. */
  isOpen: boolean;
};

export type DirectOutcome = { state: 'queued' | 'held-back'; reason?: Reason };

/**
 * Queues messages to contacts within the caller's transaction, as far as the day's limits go: one outcome
 * for each of them, in their order. The account's own address is asked for confirmation before others.
 */
export async function enqueueDirect(
  tx: Sql,
  accountId: number,
  messages: DirectMessage[],
  options: DirectOptions,
): Promise<DirectOutcome[]> {
  if (messages.length === 0) return [];
  const { quotasOf, nowMs } = options;
  const sender = (await findSenders(tx, [accountId], nowMs)).get(accountId);
  const own = mailboxOf((await findEmail(tx, accountId)) ?? '');
  const isConfirmed = sender?.contacts.some(
    ({ kind, address }) => kind === 'email' && mailboxOf(address) === own,
  );
  const isKnown = !options.isOpen || sender?.maySendSms === true || isConfirmed === true;
  const asking: Asking = { network: options.network, isKnown };
  const countedIn = ({ type, contact }: DirectMessage): Counted => ({
    accountId,
    channel: contact.kind,
    recipient: contact.address,
    ...(type === 'confirm' ? { confirmation: asking } : {}),
  });
  const words = wordsOf(sender?.language ?? null);
  const counts = await lockCountsOf(tx, messages.map(countedIn), options);
  const queued: NewDirect[] = [];
  const outcomes = new Map<DirectMessage, DirectOutcome>();
  const isOwn = ({ contact }: DirectMessage) => mailboxOf(contact.address) === own;
  for (const message of messages.toSorted((a, b) => Number(isOwn(b)) - Number(isOwn(a)))) {
    const room = takeRoom(countedIn(message), counts.used, quotasOf);
    if ('full' in room) {
      outcomes.set(message, { state: 'held-back', reason: room.full });
      continue;
    }
    const { type, contact } = message;
    const { contactId, kind: channel, address: recipient } = contact;
    // Asking for confirmation needs a link, which is made when it is sent.
    const last = room.isLast ? `\n${words.lastToday}` : '';
    const text =
      type === 'confirm'
        ? { title: '', body: '' }
        : { title: words.testTitle, body: `${words.testBody}${last}` };
    queued.push({ accountId, channel, type, contactId, recipient, ...text });
    outcomes.set(message, { state: 'queued' });
  }
  await writeDirect(tx, queued, { counted: counts.listCounted(), nowMs });
  return messages.map((message) => outcomes.get(message) ?? { state: 'held-back' });
}

async function findEmail(tx: Sql, accountId: number): Promise<string | null> {
  const { rows } = await tx.query<{ email: string }>('select email from account where id = $1', [
    accountId,
  ]);
  return rows[0]?.email ?? null;
}
