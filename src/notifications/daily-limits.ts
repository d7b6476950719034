import { mailboxOf } from '../lib/address.ts';
import type { MessageQuotas } from './settings.ts';
import type { Reason } from './reasons.ts';
import type { MessageCandidate, MessageChannel, Note, UnsentList } from './recipients.ts';

/** Something that messages of a day are counted by; `accountId` 0: it is no account's. */
export type Counter = {
  kind:
    | 'account'
    | 'recipient'
    | 'sms'
    | 'number'
    | 'installation'
    | 'webhook'
    // requests for confirmation: to a mailbox, and of an account
    | 'confirmation'
    | 'confirmations'
    // from a network, and of the installation
    | 'confirmations-network'
    | 'confirmations-all';
  accountId: number;
  key: string;
};

/** What is to be sent; `isLast`: something that it was counted by is used up with it. */
export type Allotted = MessageCandidate & { isLast: boolean };

/** A message, as far as it is counted. */
export type Counted = {
  accountId: number;
  channel: MessageChannel;
  recipient: string;
  /** It asks an address for confirmation, which may be a stranger's. */
  confirmation?: Asking;
};

/** Who has an address asked for confirmation. */
export type Asking = {
  /** Where the request came from, as addresses are counted. */
  network: string;
  /** Somebody stands for the account: it has confirmed its own address, or the operator made it. */
  isKnown: boolean;
};

/** What one account may be sent. */
export type QuotasOf = (accountId: number) => MessageQuotas;

type Limited = Counter & { limit: number; reason: Reason };

// Of all accounts together: anybody can register accounts, and must not fill an inbox with them.
const confirmationsPerAddress = 5;
/** Of `messagesPerDay`: nobody writes to strangers with this service's mail server. */
const confirmationsPart = 1 / 10;
/** Of an account that nobody stands for: its own address, and some to try. */
const confirmationsOfUnknown = 5;
/** Of the installation's: what accounts that nobody stands for may use up, so that some are left for the others. */
const partOfUnknown = 1 / 2;

export const counterName = ({ kind, accountId, key }: Counter): string =>
  `${kind} ${accountId} ${key}`;

/** All that a message counts for, and how much each of it may be on a day. */
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
 * Counts one message where everything that it counts for has room; else the reason why not. `used` is by
 * `counterName`, and is as it will be afterwards.
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
    // Who only asks for confirmation says nothing of limits.
    if (now >= counter.limit && !counter.kind.startsWith('confirmation')) isLast = true;
  }
  return { isLast };
}

/** Takes candidates in their order as long as everything they count for has room. */
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
