import type { Counted, Counter, Limited, MessageQuotas } from './channels/channel.ts';
import { channels } from './channels/channels.ts';
import type { Reason } from './reasons.ts';
import type { MessageCandidate, Note, UnsentList } from './recipients.ts';

/** A message to send. `isLast`: it uses up one of its daily limits. */
export type Allotted = MessageCandidate & { isLast: boolean };

/** The limits of one account. */
export type QuotasOf = (accountId: number) => MessageQuotas;

export const counterName = ({ kind, accountId, key }: Counter): string =>
  `${kind} ${accountId} ${key}`;

/** All counters of a message, each with its limit for one day: that of its account, and those of its channel. */
export function countersOf(message: Counted, quotasOf: QuotasOf): Limited[] {
  const { accountId } = message;
  const quotas = quotasOf(accountId);
  const { daily, limitsOf } = channels[message.channel];
  const { kind, quota, reason } = daily;
  const ofAccount = { kind, accountId, key: '', limit: quotas[quota], reason };
  return [ofAccount, ...(limitsOf?.(message, quotas) ?? [])];
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
    const taken = takeFromDailyLimits(countedOf(candidate), used, quotasOf);
    if ('full' in taken) unsent.add(candidate, taken.full);
    else {
      allowed.push({ ...candidate, ...taken });
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
