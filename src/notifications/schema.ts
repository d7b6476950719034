import { z } from 'zod';
import { timestamp } from '../http/schema.ts';
import { Reason } from './reasons.ts';

/**
 * What became of a notification for one recipient. `logged`: a log took it, and nobody was reached.
 * `held-back`: a limit of the day was reached. `planned`: it waits for its contact's `afterMs`.
 */
export const NotificationState = z
  .enum(['planned', 'queued', 'sent', 'logged', 'failed', 'held-back'])
  .meta({ id: 'NotificationState' });
export type NotificationState = z.infer<typeof NotificationState>;

/** Outcome for one recipient, as the account that owns the device sees it. */
export const NotificationOutcome = z
  .object({
    notificationId: z.int(),
    timestamp: timestamp.meta({ description: 'When the event asked for it.' }),
    changedTs: timestamp.meta({ description: 'When its state last changed.' }),
    kind: z.enum(['push', 'sms', 'email', 'webhook']),
    recipient: z.string().meta({
      description: 'Push token or telephone number, its end only; of mail and webhooks the host.',
    }),
    state: NotificationState,
    attempts: z.int(),
    via: z.string().optional().meta({ description: 'The driver that was used.' }),
    error: z
      .string()
      .optional()
      .meta({ description: 'Why the last attempt failed, or was not made.' }),
    reason: Reason.optional().meta({ description: 'The same for programs.' }),
    count: z.int().optional().meta({
      description:
        'So many were not sent for this reason on this day; `title`, `body` and `cause` are those of the first.',
    }),
    type: z.enum(['notice', 'opened', 'repeated', 'escalated', 'closed']).optional().meta({
      description: 'What it tells of its alarm; absent of a `notice`, which has none.',
    }),
    alarmId: z.int().optional(),
    grouped: z.literal(true).optional().meta({
      description: 'It went out in one message with others; how that one ended stands here.',
    }),
    title: z.string(),
    body: z.string(),
    cause: z
      .object({
        engine: z
          .object({
            pId: z.string(),
            puId: z.int(),
            stId: z.int(),
            evId: z.int(),
            ts: timestamp,
          })
          .meta({ id: 'NotificationEngineCause' }),
      })
      .meta({ id: 'NotificationCause' }),
  })
  .meta({ id: 'Notification' });
export type NotificationOutcome = z.infer<typeof NotificationOutcome>;

export const NotificationsResponse = z.object({
  notifications: z.array(NotificationOutcome),
  timestamp,
});
export type NotificationsResponse = z.infer<typeof NotificationsResponse>;
