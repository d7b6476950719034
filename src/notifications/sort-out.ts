import { normalizePhoneNumber } from '../contract/values.ts';
import type { NumberRule } from './phone-number.ts';
import type { Reason } from './reasons.ts';
import type { NewNotification } from '../contract/notification.ts';
import type { MessageQuotas } from './settings.ts';

export type EnqueueOptions = {
  /** What may be sent on one day (UTC); what is beyond is held back. */
  quotasOf: (accountId: number) => MessageQuotas;
  isAllowedNumber: NumberRule;
  /** No account needs the operator's permission for SMS. */
  isSmsForAll: boolean;
  nowMs: number;
  /** Channels that a process which delivers has; absent: all. Others are sent nothing. */
  configured?: ReadonlySet<MessageChannel>;
  /** Told what becomes of each message for each recipient. */
  note?: Note;
};

/** What was decided of a message for one recipient; a reason: why it is not sent. */
export type Note = (notification: NewNotification, decided: 'queued' | 'planned' | Reason) => void;

/** By what a message goes. */
export type MessageChannel = 'push' | 'sms' | 'email' | 'webhook';

/** A message for one recipient, not yet counted. `contactId`: null where it is no contact. */
export type MessageCandidate = {
  notification: NewNotification;
  channel: MessageChannel;
  recipient: string;
  contactId: number | null;
  /** Absent: it is sent now. Later it is sent only if its alarm is then still open and not acknowledged. */
  dueMs?: number;
};

/** What will not be sent, of one device and for one reason: what the first one was, and how many. */
export type Unsent = Omit<MessageCandidate, 'contactId' | 'dueMs'> & {
  reason: Reason;
  count: number;
};

export type UnsentList = {
  add(
    candidate: Omit<MessageCandidate, 'contactId' | 'dueMs'>,
    reason: Reason,
    count?: number,
  ): void;
  list(): Unsent[];
};

/** One entry for each device, channel and reason, however many there are. */
export function createUnsentList(note?: Note): UnsentList {
  const entries = new Map<string, Unsent>();
  return {
    add({ notification, channel, recipient }, reason, count = 1) {
      note?.(notification, reason);
      const key = `${notification.deviceId} ${channel} ${reason}`;
      const entry = entries.get(key);
      if (entry) entry.count += count;
      else entries.set(key, { notification, channel, recipient, reason, count });
    },
    list: () => [...entries.values()],
  };
}

/** What the notifications of one account are, in the order in which they were asked for. */
export type AskedOfAccount = {
  /** Each is for all of the account's push tokens and contacts. */
  pushes: NewNotification[];
  sms: MessageCandidate[];
  /** More than the account may send on a day, whatever else is decided: how many, by device. */
  beyond: Record<NewNotification['kind'], Map<number, Beyond>>;
};

type Beyond = {
  notification: NewNotification;
  recipient: string;
  count: number;
  /** Kept where somebody asks what became of each. */
  all: NewNotification[];
};

// Some of those that are looked at may be refused for their number, and the next ones are sent then.
const spareSms = 200;

/**
 * Sorts notifications by account. What is certainly too much for a day is counted and not kept: one
 * message may ask for tens of thousands.
 */
export function sortOut(
  notifications: Iterable<NewNotification>,
  { quotasOf, isAllowedNumber, note }: EnqueueOptions,
  unsent: UnsentList,
): Map<number, AskedOfAccount> {
  const byAccount = new Map<number, AskedOfAccount>();
  const judged = new Map<string, { number: string } | { refused: Reason }>();
  for (const notification of notifications) {
    const { accountId, kind } = notification;
    let asked = byAccount.get(accountId);
    if (!asked) byAccount.set(accountId, (asked = nothingAsked()));
    const quotas = quotasOf(accountId);
    if (kind === 'push') {
      if (asked.pushes.length < Math.max(quotas.messagesPerDay, quotas.webhooksPerDay))
        asked.pushes.push(notification);
      else countBeyond(asked, { notification, recipient: '' }, note);
      continue;
    }
    const { phoneNumber } = notification;
    if (asked.sms.length >= quotas.smsPerDay + spareSms) {
      countBeyond(asked, { notification, recipient: phoneNumber }, note);
      continue;
    }
    let verdict = judged.get(phoneNumber);
    if (!verdict) judged.set(phoneNumber, (verdict = judge(phoneNumber, isAllowedNumber)));
    const sms = { notification, channel: 'sms' as const, contactId: null };
    if ('refused' in verdict) unsent.add({ ...sms, recipient: phoneNumber }, verdict.refused);
    else asked.sms.push({ ...sms, recipient: verdict.number });
  }
  return byAccount;
}

const nothingAsked = (): AskedOfAccount => ({
  pushes: [],
  sms: [],
  beyond: { push: new Map(), sms: new Map() },
});

function countBeyond(
  { beyond }: AskedOfAccount,
  { notification, recipient }: Pick<Beyond, 'notification' | 'recipient'>,
  note: Note | undefined,
): void {
  const { deviceId, kind } = notification;
  let entry = beyond[kind].get(deviceId);
  if (!entry) beyond[kind].set(deviceId, (entry = { notification, recipient, count: 0, all: [] }));
  entry.count += 1;
  if (note) entry.all.push(notification);
}

function judge(
  phoneNumber: string,
  isAllowedNumber: EnqueueOptions['isAllowedNumber'],
): { number: string } | { refused: Reason } {
  const number = normalizePhoneNumber(phoneNumber);
  if (number === null) return { refused: 'number-form' };
  return isAllowedNumber(number) ? { number } : { refused: 'number-refused' };
}
