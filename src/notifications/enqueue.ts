import type { Sql } from '../db/sql.ts';
import { allot, countersOf, counterName } from './allot.ts';
import type { Counter } from './allot.ts';
import { findSenders, lockCounts, writeNotifications } from './enqueue-queries.ts';
import type { Sender } from './enqueue-queries.ts';
import type { NewNotification } from '../contract/notification.ts';
import { createUnsentList, sortOut } from './sort-out.ts';
import type { Asked, Candidate, EnqueueOptions, UnsentList } from './sort-out.ts';

/**
 * Writes push and SMS, and the jobs that deliver them, within the caller's transaction: what rolls
 * back never rings, what commits is never lost. One row a recipient; of what is not to be sent one row
 * a device, kind, reason and day. Where the day's messages are used up already, nothing is locked that
 * others need.
 */
export async function enqueueNotifications(
  tx: Sql,
  notifications: Iterable<NewNotification>,
  options: EnqueueOptions,
): Promise<void> {
  const { quotasOf, nowMs } = options;
  const unsent = createUnsentList();
  const byAccount = sortOut(notifications, options, unsent);
  if (byAccount.size === 0) return;
  const senders = await findSenders(tx, [...byAccount.keys()], nowMs);
  const candidates = [...byAccount].flatMap(([accountId, asked]) => {
    const sender = senders.get(accountId);
    return sender ? address(asked, sender, options, unsent) : [];
  });
  const counters = new Map<string, Counter>();
  for (const candidate of candidates)
    for (const counter of countersOf(candidate, quotasOf))
      counters.set(counterName(counter), counter);
  const before = await lockCounts(tx, [...counters.values()], nowMs);
  const used = new Map(before);
  const queued = allot(candidates, used, quotasOf, unsent);
  const counted = [...counters].flatMap(([name, counter]) => {
    const more = (used.get(name) ?? 0) - (before.get(name) ?? 0);
    return more > 0 ? [{ ...counter, more }] : [];
  });
  await writeNotifications(tx, { queued, unsent: unsent.list(), counted, nowMs });
}

/** The messages of an account that may have room; the others are counted as unsent. */
function address(
  { pushes, sms, beyond }: Asked,
  { accountId, tokens, maySendSms, messagesUsed, smsUsed }: Sender,
  { quotasOf, isSmsForAll }: EnqueueOptions,
  unsent: UnsentList,
): Candidate[] {
  const quotas = quotasOf(accountId);
  const mayRing = maySendSms || isSmsForAll;
  for (const { notification, recipient, count } of beyond.sms.values())
    unsent.add(notification, recipient, mayRing ? 'sms-per-day' : 'sms-not-allowed', count);
  for (const { notification, count } of tokens[0] === undefined ? [] : beyond.push.values())
    unsent.add(notification, tokens[0] ?? '', 'messages-per-day', count * tokens.length);
  const candidates: Candidate[] = [];
  for (const notification of pushes) {
    if (messagesUsed + candidates.length < quotas.messagesPerDay)
      for (const recipient of tokens) candidates.push({ notification, recipient });
    else if (tokens[0] !== undefined)
      unsent.add(notification, tokens[0], 'messages-per-day', tokens.length);
  }
  for (const candidate of sms) {
    const { notification, recipient } = candidate;
    if (!mayRing) unsent.add(notification, recipient, 'sms-not-allowed');
    else if (smsUsed >= quotas.smsPerDay) unsent.add(notification, recipient, 'sms-per-day');
    else candidates.push(candidate);
  }
  return candidates;
}
