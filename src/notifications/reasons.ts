import { z } from 'zod';

/** Why a message was not sent, or not yet: a word for programs, and what people are told. */
export const reasons = {
  'messages-per-day': 'The messages of the account are used up for this day.',
  'messages-per-recipient': 'The messages to this recipient are used up for this day.',
  'sms-per-day': 'The SMS of the account are used up for this day.',
  'sms-per-number': 'The SMS to this number are used up for this day.',
  'sms-per-installation': 'The SMS of this service are used up for this day.',
  'webhooks-per-day': 'The messages to webhooks of the account are used up for this day.',
  'confirmations-per-address': 'This address was asked for confirmation often enough today.',
  'confirmations-per-account': 'The account asked addresses for confirmation often enough today.',
  'confirmations-per-network':
    'Addresses were asked for confirmation from this network often enough today.',
  'confirmations-per-installation': 'This service asked enough addresses for confirmation today.',
  'sms-not-allowed': 'The operator has not allowed this account to send SMS.',
  'account-disabled': 'The operator has disabled the account.',
  'number-form': 'This is no telephone number as E.164 has it: + and up to 15 digits.',
  'number-refused': 'The operator has SMS sent to no such number.',
  'no-answer': 'The provider did not answer.',
  'tls-failed': 'No secure connection was made: its certificate or its TLS is not accepted.',
  'bad-answer': 'What it answered could not be read.',
  'provider-busy': 'The provider takes no messages for now.',
  'provider-login': 'The provider does not accept this service; that is for the operator to mend.',
  'provider-refused': 'The provider refused the message.',
  'recipient-gone': 'The provider says that there is no such recipient any more.',
  'no-provider': 'No push service is configured.',
  'no-sms-provider': 'No SMS provider is configured.',
  'no-mail-server': 'No mail server is configured.',
  'receiver-refused': 'The receiver did not answer with success.',
  'receiver-moved':
    'The receiver has moved for good, and redirects are not followed: enter where to.',
  'receiver-gone': 'The receiver says that it is gone (410).',
  'address-refused': 'The webhook leads to an address that is not of the public internet.',
  'not-confirmed': 'The address is not confirmed, or its owner wants no more messages.',
  'contact-gone': 'The contact or push token was removed before it was its turn.',
  'other-labels': 'The device had none of the labels of the contact when it was its turn.',
  'too-late': 'It waited for a day without getting through.',
  fault: 'The message could not be handed over.',
} as const;

export const Reason = z
  .enum(Object.keys(reasons) as [Reason, ...Reason[]])
  .meta({ id: 'NotificationReason' });
export type Reason = keyof typeof reasons;

/** What holds a message back until another day; anything else fails. */
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
