import { z } from 'zod';
import type { WebhookDocs } from '../http/openapi.ts';
import { timestamp } from '../http/schema.ts';
import type { Delivery } from './channels/channel.ts';

const Engine = z
  .object({
    pId: z.string(),
    puId: z.int(),
    stId: z.int(),
    evId: z.int(),
    ts: timestamp,
  })
  .meta({ id: 'HookEngineCause' });

const eventMembers = {
  eventId: z.string().optional().meta({
    description: 'As in the list of events; absent if the event is not recorded.',
  }),
  deviceAuthUuid: z.string(),
  deviceName: z.string(),
  puId: z.int(),
  stId: z.int(),
  evId: z.int(),
  title: z.string(),
  body: z.string(),
  cause: z
    .object({
      engine: Engine,
      senses: z.array(
        z
          .object({
            sId: z.string(),
            val: z.number(),
            ts: timestamp,
            lat: z.number().optional(),
            long: z.number().optional(),
          })
          .meta({ id: 'HookSense' }),
      ),
    })
    .meta({ id: 'HookCause' }),
};

/** A message to a webhook about an event of a device. */
const NoticeHook = z
  .object({
    type: z.literal('notice'),
    timestamp: timestamp.meta({ description: 'When the event requested it.' }),
    data: z.object(eventMembers).meta({ id: 'NoticeHookData' }),
  })
  .meta({ id: 'NoticeHook' });
type NoticeHook = z.infer<typeof NoticeHook>;

/** A message to a webhook about an alarm. `cause`: that of the firing that it reports. */
const AlarmHook = z
  .object({
    type: z.enum(['alarm.opened', 'alarm.repeated', 'alarm.escalated', 'alarm.closed']),
    timestamp: timestamp.meta({ description: 'When the message was due.' }),
    data: z
      .object({
        alarmId: z.int().meta({ description: 'The same in all messages about this alarm.' }),
        ...eventMembers,
        closedBy: z
          .string()
          .optional()
          .meta({ description: 'For `alarm.closed`: what closed it.' }),
        beganTs: timestamp.nullable().optional().meta({
          description: 'For `alarm.closed`: as in Get an alarm.',
        }),
        overTs: timestamp.nullable().optional().meta({
          description: 'For `alarm.closed`: as in Get an alarm.',
        }),
        url: z.string().optional().meta({
          description: 'The URL of Get an alarm. Absent if `PUBLIC_URL` is not set.',
        }),
      })
      .meta({ id: 'AlarmHookData' }),
  })
  .meta({ id: 'AlarmHook' });
type AlarmHook = z.infer<typeof AlarmHook>;

/** A test message. */
const TestHook = z
  .object({
    type: z.literal('test'),
    timestamp,
    data: z.object({ title: z.string(), body: z.string() }).meta({ id: 'TestHookData' }),
  })
  .meta({ id: 'TestHook' });
type TestHook = z.infer<typeof TestHook>;

/** What a delivery does not contain: the event's identifier and the alarm's URL; undefined if there is none. */
export type HookLinks = { eventId: string | undefined; alarmUrl: string | undefined };

/** The body of a message to a webhook, before it is signed. */
export function hookPayload(
  delivery: Delivery,
  { eventId, alarmUrl: url }: HookLinks,
): NoticeHook | AlarmHook | TestHook {
  const { type, alarmId, title, body, createdTs, data, deviceUuid, deviceName } = delivery;
  if (data === null || deviceUuid === null)
    return { type: 'test', timestamp: createdTs, data: { title, body } };
  const { engine, senses, closedBy, beganTs, overTs } = data;
  const { puId, stId, evId } = engine;
  const event = {
    ...(eventId === undefined ? {} : { eventId }),
    deviceAuthUuid: deviceUuid,
    deviceName: deviceName ?? '',
    puId,
    stId,
    evId,
    title,
    body,
    cause: { engine, senses },
  };
  if (alarmId === null || type === 'notice' || type === 'confirm' || type === 'test')
    return { type: 'notice', timestamp: createdTs, data: event };
  const closed = closedBy === undefined ? {} : { closedBy, beganTs, overTs };
  return {
    type: `alarm.${type}`,
    timestamp: createdTs,
    data: { alarmId, ...event, ...closed, ...(url === undefined ? {} : { url }) },
  };
}

const headers = {
  'webhook-id': 'The same at every attempt: if you have seen it, you already have the message.',
  'webhook-timestamp': 'The time of this attempt, in seconds since the Unix epoch.',
  'webhook-signature':
    '`v1,` followed by the base64-encoded HMAC-SHA-256 of `webhook-id.webhook-timestamp.body`. ' +
    'The key is the base64-decoded part of the secret after `whsec_`. There may be several ' +
    'signatures, separated by spaces: one must match.',
};

/** What webhooks receive, for the API reference. */
export const webhookDocs: WebhookDocs = {
  notice: {
    summary: 'An event of a device happened',
    description:
      'Sent for an event that has `sendPush` but no alarm. Signed according to Standard Webhooks.',
    body: NoticeHook,
    headers,
  },
  'alarm.opened': {
    summary: 'An alarm was opened, or its notification is due at last',
    description: 'Sent to webhooks without `afterMs` as soon as it is due.',
    body: AlarmHook,
    headers,
  },
  'alarm.repeated': {
    summary: 'An alarm is still open',
    description:
      'Sent every `actions.repeatMs` while the alarm is neither acknowledged nor snoozed.',
    body: AlarmHook,
    headers,
  },
  'alarm.escalated': {
    summary: 'An alarm is still open and not acknowledged',
    description: 'Sent to a webhook with `afterMs`, that long after the alarm was first reported.',
    body: AlarmHook,
    headers,
  },
  'alarm.closed': {
    summary: 'An alarm was closed',
    description: 'Sent to a webhook with `whenOver`.',
    body: AlarmHook,
    headers,
  },
  test: {
    summary: 'A trial',
    description:
      'Sent by `POST /v2/accounts/contacts/test`. Signed according to Standard Webhooks.',
    body: TestHook,
    headers,
  },
};
