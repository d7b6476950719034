import type { Sql } from '../db/sql.ts';
import { mailboxOf } from '../lib/address.ts';
import type { Asking, Counted } from './channels/channel.ts';
import { takeFromDailyLimits, type QuotasOf } from './daily-limits.ts';
import { lockCountsOf } from './counts.ts';
import { type NewDirect, writeDirect } from './enqueue.ts';
import { findSenders } from './recipients.ts';
import type { Reason } from './reasons.ts';
import { numberFormat, type Words } from './words.ts';
import { lastToday, wordsOf } from './text.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** A message to a contact that no event requests. */
export type DirectMessage = {
  type: 'confirm' | 'test' | 'notice';
  contact: { contactId: number; kind: 'email' | 'webhook'; address: string };
  /** The text of a notice. */
  say?: (words: Words) => { title: string; body: string };
};

export type DirectOutcome = { state: 'queued' | 'held-back'; reason?: Reason };

/**
 * Queues messages to contacts in the caller's transaction, within the day's limits. Returns one outcome for each
 * message, in order. The account's own address is asked for confirmation first.
 */
export async function enqueueDirect(
  tx: Sql,
  accountId: number,
  messages: DirectMessage[],
  options: {
    quotasOf: QuotasOf;
    nowTs: WallMs;
    /** The network that the request came from, in the form in which addresses are counted. */
    network: string;
    /** Anybody can register: an account must confirm its own address before it asks many others. */
    isOpen: boolean;
  },
): Promise<DirectOutcome[]> {
  if (messages.length === 0) return [];
  const { quotasOf, nowTs } = options;
  const sender = (await findSenders(tx, [accountId], nowTs)).get(accountId);
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
    const taken = takeFromDailyLimits(countedIn(message), counts.used, quotasOf);
    if ('full' in taken) {
      outcomes.set(message, { state: 'held-back', reason: taken.full });
      continue;
    }
    const { type, contact } = message;
    const { contactId, kind: channel, address: recipient } = contact;
    // The text of a confirmation request contains a link, which is made on delivery.
    const timeZone = sender?.timeZone ?? null;
    const last = taken.isLast ? `\n${lastToday({ nowTs, timeZone }, words)}` : '';
    const say = message.say ?? (() => ({ title: words.testTitle, body: words.testBody }));
    const { title, body } = type === 'confirm' ? { title: '', body: '' } : say(words);
    const text = { title, body: type === 'confirm' ? body : `${body}${last}` };
    queued.push({ accountId, channel, type, contactId, recipient, joins: false, ...text });
    outcomes.set(message, { state: 'queued' });
  }
  await writeDirect(tx, queued, { counted: counts.listCounted(), nowTs });
  return messages.map((message) => outcomes.get(message) ?? { state: 'held-back' });
}

async function findEmail(tx: Sql, accountId: number): Promise<string | null> {
  const { rows } = await tx.query<{ email: string }>('select email from account where id = $1', [
    accountId,
  ]);
  return rows[0]?.email ?? null;
}

/** How much of a quota an account uses. */
type QuotaInUse = { quota: string; used: number; limit: number };

/** Sends an account mail, to its confirmed addresses, about quotas that are nearly or completely used up. */
export async function enqueueQuotaNotice(
  tx: Sql,
  accountId: number,
  quotas: readonly QuotaInUse[],
  options: { quotasOf: QuotasOf; nowTs: WallMs },
): Promise<void> {
  const sender = (await findSenders(tx, [accountId], options.nowTs)).get(accountId);
  const emails = (sender?.contacts ?? []).filter(({ kind }) => kind === 'email');
  const say = (words: Words) => describeQuotas(quotas, words);
  const messages = emails.map((contact) => ({ type: 'notice' as const, contact, say }));
  // No confirmation is requested here, so the network does not matter.
  await enqueueDirect(tx, accountId, messages, { ...options, network: '', isOpen: false });
}

/** One line for each quota: "Devices: 8,123 of 10,000 (81 %)". */
function describeQuotas(
  quotas: readonly QuotaInUse[],
  words: Words,
): { title: string; body: string } {
  const isUsedUp = quotas.some(({ used, limit }) => used >= limit);
  const lines = quotas.map(({ quota, used, limit }) => {
    const amount = (n: number) => amountOf(quota, n, words);
    const percent = Math.floor((100 * used) / limit);
    return `${words.quotaName(quota)}: ${words.amountOf(amount(used), amount(limit))} (${percent} %)`;
  });
  return { title: words.quotaTitle(isUsedUp), body: words.quotaBody(lines.join('\n')) };
}

const mebibyte = 2 ** 20;

function amountOf(quota: string, n: number, { locale }: Words): string {
  if (!/bytes/i.test(quota)) return numberFormat(locale, {}).format(n);
  return `${numberFormat(locale, { maximumFractionDigits: 1 }).format(n / mebibyte)} MiB`;
}
