import { z } from 'zod';
import type { WebhookDocs } from '../http/openapi.ts';
import { timestamp } from '../http/schema.ts';
import type { ContactDelivery } from './dispatch-queries.ts';

const Engine = z.object({
  pId: z.string(),
  puId: z.int(),
  stId: z.int(),
  evId: z.int(),
  ts: timestamp,
});

/** A message to a webhook about an event of a device. */
export const NoticeHook = z.object({
  type: z.literal('notice'),
  timestamp: timestamp.meta({ description: 'When the event asked for it.' }),
  data: z.object({
    deviceAuthUuid: z.string(),
    deviceName: z.string(),
    puId: z.int(),
    stId: z.int(),
    evId: z.int(),
    title: z.string(),
    body: z.string(),
    cause: z.object({
      engine: Engine,
      senses: z.array(
        z.object({
          sId: z.string(),
          val: z.number(),
          ts: timestamp,
          lat: z.number().optional(),
          long: z.number().optional(),
        }),
      ),
    }),
  }),
});
export type NoticeHook = z.infer<typeof NoticeHook>;

/** A trial. */
export const TestHook = z.object({
  type: z.literal('test'),
  timestamp,
  data: z.object({ title: z.string(), body: z.string() }),
});
export type TestHook = z.infer<typeof TestHook>;

/** What a webhook is sent, before it is signed. */
export function hookPayload(turn: ContactDelivery): NoticeHook | TestHook {
  const { title, body, createdTs, data, deviceUuid, deviceName } = turn;
  if (data === null || deviceUuid === null)
    return { type: 'test', timestamp: createdTs, data: { title, body } };
  const { engine, senses } = data;
  const { puId, stId, evId } = engine;
  return {
    type: 'notice',
    timestamp: createdTs,
    data: {
      deviceAuthUuid: deviceUuid,
      deviceName: deviceName ?? '',
      puId,
      stId,
      evId,
      title,
      body,
      cause: { engine, senses },
    },
  };
}

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
    description: 'Sent for an event with `sendPush`. Signed as Standard Webhooks has it.',
    body: NoticeHook,
    headers,
  },
  test: {
    summary: 'A trial',
    description: 'Sent by `POST /v2/accounts/contacts/test`. Signed as Standard Webhooks has it.',
    body: TestHook,
    headers,
  },
};
