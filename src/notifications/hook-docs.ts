import type { WebhookDocs } from '../http/openapi-webhooks.ts';
import { AlarmHook, NoticeHook, TestHook } from './webhook-docs.ts';

const headers = {
  'webhook-id': 'The same at every attempt: who has seen it has the message already.',
  'webhook-timestamp': 'Seconds since the Unix epoch, of this attempt.',
  'webhook-signature':
    '`v1,` and, in base64, the HMAC with SHA-256 of `webhook-id.webhook-timestamp.body`, with the ' +
    'bytes behind `whsec_` as the key. There may be several, with spaces between them: one must fit.',
};

/** What webhooks of accounts are sent, for the reference. */
export const webhookDocs: WebhookDocs = {
  notice: {
    summary: 'An event of a device happened',
    description:
      'Sent for an event with `sendPush` that makes no alarm. Signed as Standard Webhooks has it.',
    body: NoticeHook,
    headers,
  },
  'alarm.opened': {
    summary: 'An alarm was opened, or is told of at last',
    description: 'Sent to webhooks without `afterMs`, as soon as it is due.',
    body: AlarmHook,
    headers,
  },
  'alarm.repeated': {
    summary: 'An alarm is still open',
    description: 'Sent every `actions.repeatMs` while it is neither acknowledged nor snoozed.',
    body: AlarmHook,
    headers,
  },
  'alarm.escalated': {
    summary: 'An alarm is still open and not acknowledged',
    description: 'Sent to a webhook with `afterMs`, so long after the alarm was told of.',
    body: AlarmHook,
    headers,
  },
  'alarm.closed': {
    summary: 'An alarm is closed',
    description: 'Sent to a webhook with `whenOver`.',
    body: AlarmHook,
    headers,
  },
  test: {
    summary: 'A trial',
    description: 'Sent by `POST /v2/accounts/contacts/test`. Signed as Standard Webhooks has it.',
    body: TestHook,
    headers,
  },
};
