import type { Counted, Counter, Limited, MessageQuotas, RecipientKey } from './channels/channel.ts';
import { channels } from './channels/channels.ts';
import type { Reason } from './reasons.ts';
import type { MessageCandidate, Note, UnsentList } from './recipients.ts';
import { isGathered, joiningPerMessage, joins, type Waiting } from './waiting.ts';

/** `isLast`: it uses up one of its daily limits. `joins`: it is sent with another, and counts with that. */
type Place = { isLast: boolean; joins: boolean };

/** A message to send. */
export type Allotted = MessageCandidate & Place;

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

/** The counter of messages that join others, if this one may. */
export function joiningOf({ accountId, channel }: Counted, quotasOf: QuotasOf): Limited | null {
  if (!isGathered({ kind: channel })) return null;
  const { quota, reason } = channels[channel].daily;
  const limit = joiningPerMessage * quotasOf(accountId)[quota];
  return { kind: 'gathered', accountId, key: '', limit, reason };
}

/**
 * A message's place: with those that wait for its recipient if they will be gathered, or if a limit of the day is
 * reached, so that the day's last message says how many there are. Otherwise it is counted as `takeFromDailyLimits`
 * does.
 */
export function allot(
  counted: Counted,
  waiting: Waiting | undefined,
  used: Map<string, number>,
  quotasOf: QuotasOf,
): Place | { full: Reason } {
  if (waiting && joins(waiting) && join(counted, used, quotasOf)) {
    waiting.count += 1;
    return { isLast: false, joins: true };
  }
  const taken = takeFromDailyLimits(counted, used, quotasOf);
  if (!('full' in taken)) {
    if (waiting) waiting.count += 1;
    return { ...taken, joins: false };
  }
  if (waiting && waiting.count > 0 && join(counted, used, quotasOf))
    return { isLast: false, joins: true };
  return taken;
}

function join(counted: Counted, used: Map<string, number>, quotasOf: QuotasOf): boolean {
  const counter = joiningOf(counted, quotasOf);
  if (!counter) return false;
  const before = used.get(counterName(counter)) ?? 0;
  if (before >= counter.limit) return false;
  used.set(counterName(counter), before + 1);
  return true;
}

/** Takes candidates in order, each as long as there is a place for it. */
export function applyDailyLimits(
  candidates: readonly MessageCandidate[],
  waitingFor: (recipient: RecipientKey) => Waiting | undefined,
  used: Map<string, number>,
  quotasOf: QuotasOf,
  unsent: UnsentList,
  note?: Note,
): Allotted[] {
  const allowed: Allotted[] = [];
  for (const candidate of candidates) {
    const taken = allot(countedOf(candidate), waitingFor(keyOf(candidate)), used, quotasOf);
    if ('full' in taken) unsent.add(candidate, taken.full);
    else {
      allowed.push({ ...candidate, ...taken });
      note?.(candidate.notification, candidate.dueMs === undefined ? 'queued' : 'planned');
    }
  }
  return allowed;
}

export const keyOf = ({
  notification: { accountId },
  channel: kind,
  recipient,
  contactId,
}: MessageCandidate): RecipientKey => ({ accountId, kind, recipient, contactId });

export const countedOf = ({ notification, channel, recipient }: MessageCandidate): Counted => ({
  accountId: notification.accountId,
  channel,
  recipient,
});
