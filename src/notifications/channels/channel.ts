import type { ChannelName } from '../../contract/actions.ts';
import type { CauseDetail, CauseSense, EngineCause, SenseEvent } from '../../contract/event.ts';
import type { Clock } from '../../lib/clock-readings.ts';
import { messageOf } from '../../lib/thrown.ts';
import type { Logger } from '../../log/logger.ts';
import type { Reason } from '../reasons.ts';

/**
 * What the rest of the service knows about one way to reach people. Each channel has a file of its own, with its
 * settings and the function that opens it; `channels.ts` lists them all.
 */
export type Channel = {
  /** Who receives its messages: the push tokens of an account, the telephone numbers of an action, or contacts. */
  reaches: 'tokens' | 'numbers' | 'contacts';
  /** Programs receive it: they get every message by itself, and any failure is the receiver's. */
  isForPrograms?: true;
  /** The limit of one account on one day (UTC). */
  daily: DailyLimit;
  /** The further limits of a message. */
  limitsOf?: (message: Counted, quotas: MessageQuotas) => Limited[];
  /** The reason of a message that fails because no delivering process has this channel. */
  unconfigured: Reason;
  /** Enough of a recipient to recognise it, not enough to write to it. */
  mask: (recipient: string) => string;
  /** Shortens a digest of many messages to what the channel can carry. */
  shorten?: (text: { title: string; body: string }) => string;
  /** How many deliveries one process makes at once, by lane. `concurrency`: the operator's setting. */
  places: (concurrency: number) => Places;
};

/** A channel that this process has opened. */
export type OpenChannel = {
  /** The driver, as outcomes name it. */
  via: string;
  /** The driver writes to the log and reaches nobody. */
  isLog?: boolean;
  /** The longest that one attempt takes, ms. */
  timeoutMs: number;
  /** Resolves once the provider has accepted the message; rejects with a `DeliveryError`. */
  send: (delivery: Delivery) => Promise<void>;
  close: () => Promise<void>;
};

/** What a channel needs besides its settings. */
export type ChannelDeps = ContactOptions & { log: NotificationLog; clock: Clock };

/** How contacts are reached: the e-mail addresses and webhooks of accounts. */
export type ContactOptions = {
  /** The keys that sign links in mails, newest first. */
  linkKeys: readonly Buffer[];
  /** The keys that webhook secrets are derived from, newest first. */
  webhookKeys: readonly Buffer[];
  /** The base URL of links in mails, without a slash at its end. */
  publicUrl: () => string;
  /** The base URL of the API for programs; null if `PUBLIC_URL` is not set. */
  apiUrl: string | null;
  /** Links to devices lead to the console. */
  hasConsole: boolean;
  findEventId: FindEventId;
  /** Null if no mail is sent. */
  email: { smtpUrl: string; from: string; timeoutMs: number } | null;
  isPrivateAllowed: boolean;
  /** Replaces the system's resolver. */
  lookupAll?: LookupAll;
};

/** Resolves a host name to all its addresses, as `dns.lookup` does. */
export type LookupAll = (
  hostname: string,
  callback: (error: Error | null, addresses: { address: string; family: number }[]) => void,
) => void;

/** The identifier of the recorded event; undefined if it was not recorded. */
type FindEventId = (
  deviceUuid: string,
  cause: Pick<SenseEvent['cause'], 'engine' | 'senses'>,
) => Promise<string | undefined>;

/** What the outbox needs of the log. */
export type NotificationLog = Pick<Logger, 'debug' | 'info' | 'warn'>;

/**
 * What has its own places. Webhooks have three lanes: those that answered the last time, those that were never tried,
 * and those that did not answer the last time.
 */
type Lane = ChannelName | 'webhook-new' | 'webhook-unanswered';
export type Places = Partial<Record<Lane, number>>;

export type MessageType =
  'notice' | 'confirm' | 'test' | 'opened' | 'repeated' | 'escalated' | 'closed';

/** What is stored of an event besides the text. */
export type NoticeData = {
  engine: EngineCause;
  senses: CauseSense[];
  why?: CauseDetail[];
  /** What closed the alarm, if it is over. */
  closedBy?: string;
  /** Since when its condition held, and until when, by its measurements (ms); null if not known. */
  beganTs?: number | null;
  overTs?: number | null;
};

/** A recipient: a contact, or a push token or telephone number of an account. */
export type RecipientKey = {
  accountId: number;
  kind: ChannelName;
  recipient: string;
  contactId: number | null;
};

/** A claimed message; its recipient is busy until it is settled. */
export type Delivery = RecipientKey & {
  id: number;
  lane: Lane;
  /** Host and port of a webhook. */
  host: string | null;
  /** Null if the recipient is not a contact. */
  contactUuid: string | null;
  type: MessageType;
  title: string;
  body: string;
  engine: EngineCause | null;
  data: NoticeData | null;
  deviceUuid: string | null;
  deviceName: string | null;
  language: string | null;
  timeZone: string | null;
  createdTs: number;
  /** Number of attempts, including this one. */
  attempts: number;
  /** The last attempt ended with its process, perhaps after it was accepted. */
  isRepeated: boolean;
  isDisabled: boolean;
  /** True also if no confirmation is needed. */
  isConfirmed: boolean;
  isUnsubscribed: boolean;
  /** Whether the device now has one of the contact's labels, or needs none. */
  isSuiting: boolean;
  alarmId: number | null;
  announcement: number | null;
  /** It counts for the limits of its day by itself. */
  isCounted: boolean;
  /** Of a summary: the pages of the console that show what it is about. Absent: that of its device. */
  pages?: readonly string[];
  /** The recipient had many messages lately: all that wait for it are sent as one. */
  isGathering: boolean;
};

/** The limits of one day (UTC); config/default.ts says what each is for. */
export type MessageQuotas = {
  messagesPerDay: number;
  messagesPerRecipient: number;
  webhooksPerDay: number;
  smsPerDay: number;
  smsPerNumber: number;
  smsPerInstallation: number;
  confirmationsPerNetwork: number;
  confirmationsPerInstallation: number;
};

/**
 * What the messages of a day are counted by: a row of `message_count`. Each channel names its own kinds. `accountId` is
 * 0 for a counter that all accounts share.
 */
export type Counter = { kind: string; accountId: number; key: string };

/** A counter with its limit for one day, and the reason of a message that exceeds it. */
export type Limited = Counter & { limit: number; reason: Reason };

/** The daily limit of an account: the kind of its counter, the quota, and the reason of a message that exceeds it. */
type DailyLimit = {
  kind: string;
  quota: keyof MessageQuotas;
  reason: Reason;
};

/** What decides the counters of a message. */
export type Counted = {
  accountId: number;
  channel: ChannelName;
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

/** E-mail and push messages count together. */
export const messagesPerDay: DailyLimit = {
  kind: 'account',
  quota: 'messagesPerDay',
  reason: 'messages-per-day',
};

export const perRecipient = (
  { accountId, recipient }: Counted,
  { messagesPerRecipient }: MessageQuotas,
): Limited => ({
  kind: 'recipient',
  accountId,
  key: recipient,
  limit: messagesPerRecipient,
  reason: 'messages-per-recipient',
});

/** The last characters of a token or number, at most half of it. */
export const maskStart = (recipient: string): string =>
  `…${recipient.slice(-Math.min(4, Math.floor(recipient.length / 2)))}`;

/** What a driver sends. `id` is the same for every attempt, so that a receiver can recognise a repetition. */
export type OutgoingMessage = {
  id: number;
  recipient: string;
  title: string;
  body: string;
  /** Which device and event this is about, for an app that shows more than the text. */
  data: Record<string, string | number>;
};

/** Sends messages through one external service. */
export type Driver = {
  /** Stored with the outcome, as `via`. */
  name: string;
  /** The driver writes to the log and reaches nobody. */
  isLog?: boolean;
  /** Resolves once the service has accepted the message; rejects with a `DeliveryError`. */
  send: (message: OutgoingMessage) => Promise<void>;
  close: () => Promise<void>;
};

/** Makes a channel of a driver that sends a text to one recipient. `timeoutMs`: the longest that one attempt takes. */
export function channelOf(driver: Driver, timeoutMs: number): OpenChannel {
  const { name: via, isLog = false, send, close } = driver;
  return {
    via,
    isLog,
    timeoutMs,
    send: ({ id, recipient, title, body, deviceUuid, engine }) =>
      send({ id, recipient, title, body, data: { deviceAuthUuid: deviceUuid ?? '', ...engine } }),
    close,
  };
}

/**
 * `again`: a later attempt may work. `never`: this message cannot be delivered. `gone`: nothing can be delivered to
 * this recipient any more.
 */
export type DriverVerdict = 'again' | 'never' | 'gone';

/** `reason` is what the account sees. `message` is what the provider said: only the operator sees it. */
export class DeliveryError extends Error {
  readonly verdict: DriverVerdict;
  readonly reason: Reason;
  /** How long the provider asked us to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(
    verdict: DriverVerdict,
    reason: Reason,
    message: string,
    options: { cause?: unknown; retryAfterMs?: number | undefined } = {},
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.name = 'DeliveryError';
    this.verdict = verdict;
    this.reason = reason;
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** Any other error is a fault of the driver itself: a later attempt may work. */
export function asDeliveryError(error: unknown): DeliveryError {
  if (error instanceof DeliveryError) return error;
  return new DeliveryError('again', 'fault', messageOf(error), { cause: error });
}
