import type { Sql } from '../db/sql.ts';
import { takeRoom, type Counted, type QuotasOf } from './allot.ts';
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

export type DirectOutcome = { state: 'queued' | 'held-back'; reason?: Reason };

/**
 * Queues messages to contacts within the caller's transaction, as far as the day's limits go: one outcome
 * for each of them, in their order.
 */
export async function enqueueDirect(
  tx: Sql,
  accountId: number,
  messages: DirectMessage[],
  options: { quotasOf: QuotasOf; nowMs: number },
): Promise<DirectOutcome[]> {
  if (messages.length === 0) return [];
  const { quotasOf, nowMs } = options;
  const countedIn = ({ type, contact }: DirectMessage): Counted => ({
    accountId,
    channel: contact.kind,
    recipient: contact.address,
    isConfirmation: type === 'confirm',
  });
  const sender = (await findSenders(tx, [accountId], nowMs)).get(accountId);
  const words = wordsOf(sender?.language ?? null);
  const counts = await lockCountsOf(tx, messages.map(countedIn), options);
  const queued: NewDirect[] = [];
  const outcomes = messages.map((message): DirectOutcome => {
    const room = takeRoom(countedIn(message), counts.used, quotasOf);
    if ('full' in room) return { state: 'held-back', reason: room.full };
    const { type, contact } = message;
    const { contactId, kind: channel, address: recipient } = contact;
    // Asking for confirmation needs a link, which is made when it is sent.
    const last = room.isLast ? `\n${words.lastToday}` : '';
    const text =
      type === 'confirm'
        ? { title: '', body: '' }
        : { title: words.testTitle, body: `${words.testBody}${last}` };
    queued.push({ accountId, channel, type, contactId, recipient, ...text });
    return { state: 'queued' };
  });
  await writeDirect(tx, queued, { counted: counts.listCounted(), nowMs });
  return outcomes;
}
