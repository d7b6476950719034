import { mailboxOf } from '../lib/address.ts';
import type { MessageQuotas } from './settings.ts';
import type { Reason } from './reasons.ts';
import type { MessageCandidate, MessageChannel, Note, UnsentList } from './recipients.ts';

/** What the messages of a day are counted by. `accountId` is 0 for a counter that all accounts share. */
export type Counter = {
  kind:
    | 'account'
    | 'recipient'
    | 'sms'
    | 'number'
    | 'installation'
    | 'webhook'
    // Confirmation requests to one mailbox, and of one account.
    | 'confirmation'
    | 'confirmations'
    // Confirmation requests from one network, and of the whole installation.
    | 'confirmations-network'
    | 'confirmations-all';
  accountId: number;
  key: string;
};

/** A message to send. `isLast`: it uses up one of its daily limits. */
export type Allotted = MessageCandidate & { isLast: boolean };

/** What decides the counters of a message. */
export type Counted = {
  accountId: number;
  channel: MessageChannel;
  recipient: string;
  /** Set if the message asks an address for confirmation; the address may be a stranger's. */
  confirmation?: Asking;
};

/** Who asks for a confirmation. */
export type Asking = {
  /** The network that the request came from, in the form in which addresses are counted. */
  network: string;
  /** Somebody vouches for the account: it has confirmed its own address, or the operator created it. */
  isKnown: boolean;
};

/** The limits of one account. */
export type QuotasOf = (accountId: number) => MessageQuotas;

type Limited = Counter & { limit: number; reason: Reason };

// For all accounts together: anybody can register accounts, and must not be able to flood an inbox with them.
const confirmationsPerAddress = 5;
/** Share of `messagesPerDay`: nobody can use this service's mail server to write to many strangers. */
const confirmationsPart = 1 / 10;
/** For an account that nobody vouches for: enough for its own address and a few attempts. */
const confirmationsOfUnknown = 5;
/** Share of the installation's limit that accounts nobody vouches for may use; the rest is left for the others. */
const partOfUnknown = 1 / 2;

export const counterName = ({ kind, accountId, key }: Counter): string =>
  `${kind} ${accountId} ${key}`;

/** All counters of a message, each with its limit for one day. */
export function countersOf(
  { accountId, channel, recipient, confirmation }: Counted,
  quotasOf: QuotasOf,
): Limited[] {
  const quotas = quotasOf(accountId);
  const own = { accountId, key: '' };
  if (channel === 'webhook')
    return [{ kind: 'webhook', ...own, limit: quotas.webhooksPerDay, reason: 'webhooks-per-day' }];
  if (channel === 'sms') return smsCounters(accountId, recipient, quotas);
  const personal: Limited[] = [
    { kind: 'account', ...own, limit: quotas.messagesPerDay, reason: 'messages-per-day' },
    {
      kind: 'recipient',
      accountId,
      key: recipient,
      limit: quotas.messagesPerRecipient,
      reason: 'messages-per-recipient',
    },
  ];
  if (confirmation)
    personal.push(...confirmationCounters(accountId, recipient, { ...confirmation, quotas }));
  return personal;
}

function confirmationCounters(
  accountId: number,
  recipient: string,
  { network, isKnown, quotas }: Asking & { quotas: MessageQuotas },
): Limited[] {
  const { messagesPerDay, confirmationsPerNetwork, confirmationsPerInstallation } = quotas;
  const ofAccount = Math.ceil(confirmationsPart * messagesPerDay);
  return [
    {
      kind: 'confirmation',
      accountId: 0,
      key: mailboxOf(recipient),
      limit: confirmationsPerAddress,
      reason: 'confirmations-per-address',
    },
    {
      kind: 'confirmations',
      accountId,
      key: '',
      limit: isKnown ? ofAccount : Math.min(confirmationsOfUnknown, ofAccount),
      reason: 'confirmations-per-account',
    },
    {
      kind: 'confirmations-network',
      accountId: 0,
      key: network,
      limit: confirmationsPerNetwork,
      reason: 'confirmations-per-network',
    },
    {
      kind: 'confirmations-all',
      accountId: 0,
      key: '',
      limit: Math.ceil((isKnown ? 1 : partOfUnknown) * confirmationsPerInstallation),
      reason: 'confirmations-per-installation',
    },
  ];
}

function smsCounters(accountId: number, number: string, quotas: MessageQuotas): Limited[] {
  const { smsPerDay, smsPerNumber, smsPerInstallation } = quotas;
  return [
    { kind: 'sms', accountId, key: '', limit: smsPerDay, reason: 'sms-per-day' },
    { kind: 'number', accountId: 0, key: number, limit: smsPerNumber, reason: 'sms-per-number' },
    {
      kind: 'installation',
      accountId: 0,
      key: '',
      limit: smsPerInstallation,
      reason: 'sms-per-installation',
    },
  ];
}

/**
 * Counts one message if all its counters are below their limits, and updates `used` (by `counterName`); otherwise
 * returns the reason and counts nothing.
 */
export function takeFromDailyLimits(
  counted: Counted,
  used: Map<string, number>,
  quotasOf: QuotasOf,
): { isLast: boolean } | { full: Reason } {
  const counters = countersOf(counted, quotasOf);
  const full = counters.find((counter) => (used.get(counterName(counter)) ?? 0) >= counter.limit);
  if (full) return { full: full.reason };
  let isLast = false;
  for (const counter of counters) {
    const now = (used.get(counterName(counter)) ?? 0) + 1;
    used.set(counterName(counter), now);
    // A confirmation request mentions no limits.
    if (now >= counter.limit && !counter.kind.startsWith('confirmation')) isLast = true;
  }
  return { isLast };
}

/** Takes candidates in order, each as long as all its counters are below their limits. */
export function applyDailyLimits(
  candidates: readonly MessageCandidate[],
  used: Map<string, number>,
  quotasOf: QuotasOf,
  unsent: UnsentList,
  note?: Note,
): Allotted[] {
  const allowed: Allotted[] = [];
  for (const candidate of candidates) {
    const room = takeFromDailyLimits(countedOf(candidate), used, quotasOf);
    if ('full' in room) unsent.add(candidate, room.full);
    else {
      allowed.push({ ...candidate, ...room });
      note?.(candidate.notification, candidate.dueMs === undefined ? 'queued' : 'planned');
    }
  }
  return allowed;
}

export const countedOf = ({ notification, channel, recipient }: MessageCandidate): Counted => ({
  accountId: notification.accountId,
  channel,
  recipient,
});
