import type { NewNotification } from '../contract/notification.ts';
import type { Sql } from '../db/sql.ts';
import { address } from './resolve-recipients.ts';
import { allot, countedOf, countersOf, counterName } from './allot.ts';
import type { Counted, Counter, QuotasOf } from './allot.ts';
import type { Wording } from './compose.ts';
import { lockCounts, writeNotifications } from './enqueue-queries.ts';
import { type DeviceWords, findSenders, listDeviceWords, type Sender } from './recipients.ts';
import { createUnsentList, sortOut } from './sort-out.ts';
import type { AskedOfAccount, EnqueueOptions } from './sort-out.ts';

/**
 * Writes what people are told, and the jobs that deliver it, within the caller's transaction: what rolls
 * back never rings, what commits is never lost. One row a recipient; of what is not to be sent one row
 * a device, channel, reason and day. Where the day's messages are used up already, nothing is locked that
 * others need.
 */
export async function enqueueNotifications(
  tx: Sql,
  notifications: Iterable<NewNotification>,
  options: EnqueueOptions,
): Promise<void> {
  const { quotasOf, nowMs, note } = options;
  const unsent = createUnsentList(note);
  const byAccount = sortOut(notifications, options, unsent);
  if (byAccount.size === 0) return;
  const senders = await findSenders(tx, [...byAccount.keys()], nowMs, alarmsIn(byAccount));
  const devices = await findWords(tx, byAccount, unsent.list());
  const candidates = [...byAccount].flatMap(([accountId, asked]) => {
    const sender = senders.get(accountId);
    return sender ? address(asked, sender, devices, options, unsent) : [];
  });
  const counts = await lockCountsOf(tx, candidates.map(countedOf), { quotasOf, nowMs });
  const queued = allot(candidates, counts.used, quotasOf, unsent, note);
  await writeNotifications(tx, {
    queued,
    unsent: unsent.list(),
    counted: counts.listCounted(),
    wordingOf: wordingFrom(senders, devices, nowMs),
    nowMs,
  });
}

const alarmsIn = (byAccount: ReadonlyMap<number, AskedOfAccount>): number[] => [
  ...new Set(
    [...byAccount.values()].flatMap(({ pushes }) =>
      pushes.flatMap(({ about }) => about?.alarmId ?? []),
    ),
  ),
];

/** What is used today of all that these messages count for, locked until the transaction ends. */
export async function lockCountsOf(
  tx: Sql,
  messages: Counted[],
  { quotasOf, nowMs }: { quotasOf: QuotasOf; nowMs: number },
) {
  const counters = new Map<string, Counter>();
  for (const message of messages)
    for (const counter of countersOf(message, quotasOf))
      counters.set(counterName(counter), counter);
  const before = await lockCounts(tx, [...counters.values()], nowMs);
  const used = new Map(before);
  const listCounted = () =>
    [...counters].flatMap(([name, counter]) => {
      const more = (used.get(name) ?? 0) - (before.get(name) ?? 0);
      return more > 0 ? [{ ...counter, more }] : [];
    });
  return { used, listCounted };
}

async function findWords(
  tx: Sql,
  byAccount: ReadonlyMap<number, AskedOfAccount>,
  refused: { notification: NewNotification }[],
): Promise<Map<number, DeviceWords>> {
  const deviceIds = new Set<number>();
  const sIds = new Set<string>();
  const note = ({ deviceId, event, kind }: NewNotification) => {
    deviceIds.add(deviceId);
    if (kind === 'push') for (const { sId } of event.cause.senses) sIds.add(sId);
  };
  for (const { pushes, sms, beyond } of byAccount.values()) {
    pushes.forEach(note);
    for (const { notification } of sms) note(notification);
    for (const kind of [beyond.push, beyond.sms])
      for (const { notification } of kind.values()) note(notification);
  }
  for (const { notification } of refused) note(notification);
  return listDeviceWords(tx, [...deviceIds], [...sIds]);
}

function wordingFrom(
  senders: ReadonlyMap<number, Sender>,
  devices: ReadonlyMap<number, DeviceWords>,
  nowMs: number,
): (notification: NewNotification) => Wording {
  return ({ accountId, deviceId, deviceUuid }) => {
    const { language = null, timeZone = null } = senders.get(accountId) ?? {};
    const { name, senses = {} } = devices.get(deviceId) ?? {};
    return { language, timeZone, deviceName: name || deviceUuid, senses, nowMs };
  };
}
