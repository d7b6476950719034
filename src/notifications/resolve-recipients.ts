import type { NewNotification } from '../contract/notification.ts';
import type { ContactOf, DeviceWords, Sender } from './recipients.ts';
import type { AskedOfAccount, MessageCandidate, EnqueueOptions, UnsentList } from './sort-out.ts';

type Devices = ReadonlyMap<number, Pick<DeviceWords, 'labels'>>;

/** The messages of an account that may have room; the others are counted as unsent. */
export function address(
  asked: AskedOfAccount,
  sender: Sender,
  devices: Devices,
  options: EnqueueOptions,
  unsent: UnsentList,
): MessageCandidate[] {
  return [
    ...addressPushes(asked, sender, devices, options, unsent),
    ...addressSms(asked, sender, options, unsent),
  ];
}

function addressPushes(
  { pushes, beyond }: AskedOfAccount,
  { accountId, tokens, contacts, messagesUsed, webhooksUsed }: Sender,
  devices: Devices,
  { quotasOf, configured, nowMs, note }: EnqueueOptions,
  unsent: UnsentList,
): MessageCandidate[] {
  const { messagesPerDay, webhooksPerDay } = quotasOf(accountId);
  const recipientsOf = (notification: NewNotification): MessageCandidate[] => [
    ...tokens.map((token) => ({
      notification,
      channel: 'push' as const,
      recipient: token,
      contactId: null,
    })),
    ...contacts
      .filter(({ labels }) => suits(labels, devices.get(notification.deviceId)?.labels ?? []))
      .filter((contact) => contact.afterMs === 0 || mayPlan(notification, contact))
      .map(({ kind, contactId, address: recipient, afterMs }) => ({
        notification,
        channel: kind,
        recipient,
        contactId,
        ...(afterMs > 0 && { dueMs: nowMs + afterMs }),
      })),
  ];
  const reasonOf = ({ channel }: MessageCandidate) =>
    channel === 'webhook' ? ('webhooks-per-day' as const) : ('messages-per-day' as const);
  for (const { notification, count, all } of beyond.push.values())
    for (const candidate of recipientsOf(notification)) {
      unsent.add(candidate, reasonOf(candidate), count);
      for (const one of all) note?.(one, reasonOf(candidate));
    }
  const room = { messages: messagesPerDay - messagesUsed, webhooks: webhooksPerDay - webhooksUsed };
  const candidates: MessageCandidate[] = [];
  for (const notification of pushes) {
    // A message has room for all whom it is for, or for none: as long as there is any, all are looked at.
    const open = { messages: room.messages > 0, webhooks: room.webhooks > 0 };
    for (const candidate of recipientsOf(notification)) {
      if (configured && !configured.has(candidate.channel)) {
        unsent.add(candidate, candidate.channel === 'email' ? 'no-mail-server' : 'no-provider');
        continue;
      }
      const counter = candidate.channel === 'webhook' ? 'webhooks' : 'messages';
      if (!open[counter]) {
        unsent.add(candidate, reasonOf(candidate));
        continue;
      }
      room[counter] -= 1;
      candidates.push(candidate);
    }
  }
  return candidates;
}

/** Contacts that wait are told of alarms, once of each. */
const mayPlan = ({ about }: NewNotification, { escalatedIds }: ContactOf): boolean =>
  about?.type === 'opened' && about.alarmId !== null && !escalatedIds.includes(about.alarmId);

/** A contact without labels is told of all devices. */
const suits = (wanted: ContactOf['labels'], labels: readonly string[]): boolean =>
  wanted.length === 0 || wanted.some((label) => labels.includes(label));

function addressSms(
  { sms, beyond }: AskedOfAccount,
  { accountId, maySendSms, smsUsed }: Sender,
  { quotasOf, isSmsForAll, configured, note }: EnqueueOptions,
  unsent: UnsentList,
): MessageCandidate[] {
  const mayRing = maySendSms || isSmsForAll;
  const reason = mayRing ? 'sms-per-day' : 'sms-not-allowed';
  for (const { notification, recipient, count, all } of beyond.sms.values()) {
    unsent.add({ notification, channel: 'sms', recipient }, reason, count);
    for (const one of all) note?.(one, reason);
  }
  const hasRoom = mayRing && smsUsed < quotasOf(accountId).smsPerDay;
  const isConfigured = configured?.has('sms') ?? true;
  if (hasRoom && isConfigured) return sms;
  for (const candidate of sms) unsent.add(candidate, hasRoom ? 'no-sms-provider' : reason);
  return [];
}
