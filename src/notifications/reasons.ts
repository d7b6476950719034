import { z } from 'zod';

/** Why a message was not sent, or not yet: a code for programs, and a text for people. */
export const reasons = {
  'messages-per-day': "The account has used up this day's messages.",
  'messages-per-recipient': "The account has used up this day's messages to this recipient.",
  'sms-per-day': "The account has used up this day's SMS.",
  'sms-per-number': "The account has used up this day's SMS to this number.",
  'sms-per-installation': "This service has used up this day's SMS.",
  'webhooks-per-day': "The account has used up this day's messages to webhooks.",
  'confirmations-per-address': 'Too many confirmation requests were sent to this address today.',
  'confirmations-per-account': 'This account sent too many confirmation requests today.',
  'confirmations-per-network': 'Too many confirmation requests came from this network today.',
  'confirmations-per-installation': 'This service sent too many confirmation requests today.',
  'sms-not-allowed': 'The operator has not allowed this account to send SMS.',
  'account-disabled': 'The operator has disabled the account.',
  'number-form': 'Not a valid E.164 phone number: expected + and up to 15 digits.',
  'number-refused': 'The operator does not allow SMS to numbers like this.',
  'no-answer': 'The provider did not answer.',
  'tls-failed':
    "No secure connection could be made: the provider's certificate or TLS version is not accepted.",
  'bad-answer': "The provider's answer could not be read.",
  'provider-busy': 'The provider is not accepting messages at the moment.',
  'provider-login':
    "The provider refused this service's credentials; only the operator can fix this.",
  'provider-refused': 'The provider refused the message.',
  'recipient-gone': 'The provider says this recipient no longer exists.',
  'no-provider': 'No push service is configured.',
  'no-sms-provider': 'No SMS provider is configured.',
  'no-mail-server': 'No mail server is configured.',
  'receiver-refused': 'The receiver did not report success.',
  'receiver-moved':
    'The receiver has moved permanently, and redirects are not followed: enter its new address.',
  'receiver-gone': 'The receiver says it no longer exists (410).',
  'address-refused': "The webhook's address is not on the public internet.",
  'not-confirmed': 'The address is not confirmed, or its owner has unsubscribed.',
  'contact-gone': 'The contact or push token was removed before the message was sent.',
  'other-labels': "The device had none of the contact's labels when the message was due.",
  'too-late': 'The message could not be delivered within a day.',
  fault: "Sending failed; the service's log has the details.",
} as const;

export const Reason = z
  .enum(Object.keys(reasons) as [Reason, ...Reason[]])
  .meta({ id: 'NotificationReason' });
export type Reason = keyof typeof reasons;

/** Reasons that hold a message back for the rest of the day; any other reason is a failure. */
const limits: Reason[] = [
  'messages-per-day',
  'messages-per-recipient',
  'webhooks-per-day',
  'confirmations-per-address',
  'confirmations-per-account',
  'confirmations-per-network',
  'confirmations-per-installation',
  'sms-per-day',
  'sms-per-number',
  'sms-per-installation',
];

export const isLimit = (reason: Reason): boolean => limits.includes(reason);
