import type { CauseSense, CauseDetail, EngineCause } from '../contract/event.ts';
import type { MessageChannel } from './sort-out.ts';

/** The channel on which a process that has committed messages says so to those that deliver. */
export const dueChannel = 'sensorium_due';

export type MessageType =
  'notice' | 'confirm' | 'test' | 'opened' | 'repeated' | 'escalated' | 'closed';

/** What is kept of an event beside the text. */
export type NoticeData = {
  engine: EngineCause;
  senses: CauseSense[];
  why?: CauseDetail[];
  /** Of an alarm that is over: by what. */
  closedBy?: string;
};

/** Whose turn it is: a contact, or a push token or telephone number of an account. */
export type RecipientKey = {
  accountId: number;
  kind: MessageChannel;
  recipient: string;
  contactId: number | null;
};

/**
 * What has places of its own. Webhooks have three kinds: those that answered the last time, those that were
 * never tried, and those that nobody answered the last time.
 */
export type Lane = MessageChannel | 'webhook-new' | 'webhook-unanswered';

/** A message whose recipient's turn it is; the recipient is busy until it is settled. */
export type Turn = RecipientKey & {
  id: number;
  lane: Lane;
  /** Of a webhook, with its port. */
  host: string | null;
  /** Null where it is no contact. */
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
  /** How often it was tried, this time included. */
  attempts: number;
  isDisabled: boolean;
  /** True of what needs no confirmation. */
  isConfirmed: boolean;
  isUnsubscribed: boolean;
  /** Whether the device has one of the contact's labels by now, or needs none. */
  isSuiting: boolean;
  alarmId: number | null;
  announcement: number | null;
  /** Its recipient had many messages lately: all that waits for it goes out as one. */
  isGathering: boolean;
};
