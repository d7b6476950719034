import type { MessageQuotas } from './settings.ts';
import type { Reason } from './reasons.ts';
import type { Candidate, UnsentList } from './sort-out.ts';

/** Something that messages of a day are counted by; `accountId` 0: it is no account's. */
export type Counter = {
  kind: 'account' | 'recipient' | 'sms' | 'number' | 'installation';
  accountId: number;
  key: string;
};

/** What is to be sent; `isLast`: something that it was counted by is used up with it. */
export type Allotted = Candidate & { isLast: boolean };

/** What one account may be sent. */
type QuotasOf = (accountId: number) => MessageQuotas;

type Limited = Counter & { limit: number; reason: Reason };

export const counterName = ({ kind, accountId, key }: Counter): string =>
  `${kind} ${accountId} ${key}`;

/** All that a message counts for, and how much each of it may be on a day. */
export function countersOf({ notification, recipient }: Candidate, quotasOf: QuotasOf): Limited[] {
  const { accountId, kind } = notification;
  const quotas = quotasOf(accountId);
  if (kind === 'push') {
    return [
      {
        kind: 'account',
        accountId,
        key: '',
        limit: quotas.messagesPerDay,
        reason: 'messages-per-day',
      },
      {
        kind: 'recipient',
        accountId,
        key: recipient,
        limit: quotas.messagesPerRecipient,
        reason: 'messages-per-recipient',
      },
    ];
  }
  return [
    { kind: 'sms', accountId, key: '', limit: quotas.smsPerDay, reason: 'sms-per-day' },
    {
      kind: 'number',
      accountId: 0,
      key: recipient,
      limit: quotas.smsPerNumber,
      reason: 'sms-per-number',
    },
    {
      kind: 'installation',
      accountId: 0,
      key: '',
      limit: quotas.smsPerInstallation,
      reason: 'sms-per-installation',
    },
  ];
}

/**
 * Takes candidates in their order as long as everything they count for has room. `used` is by `nameOf`,
 * and is as it will be afterwards when this returns.
 */
export function allot(
  candidates: readonly Candidate[],
  used: Map<string, number>,
  quotasOf: QuotasOf,
  unsent: UnsentList,
): Allotted[] {
  const allotted: Allotted[] = [];
  for (const candidate of candidates) {
    const counters = countersOf(candidate, quotasOf);
    const full = counters.find((counter) => (used.get(counterName(counter)) ?? 0) >= counter.limit);
    if (full) {
      unsent.add(candidate.notification, candidate.recipient, full.reason);
      continue;
    }
    let isLast = false;
    for (const counter of counters) {
      const now = (used.get(counterName(counter)) ?? 0) + 1;
      used.set(counterName(counter), now);
      if (now >= counter.limit) isLast = true;
    }
    allotted.push({ ...candidate, isLast });
  }
  return allotted;
}
