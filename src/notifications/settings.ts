import { z } from 'zod';
import { channelSettings } from './channels/channels.ts';
import { providerUrl } from './channels/post.ts';

/** Messages to people: drivers, limits and retries. */
export const NotificationSettings = z.object({
  /** Messages that an account may send on one day, in place of `quotas.messagesPerDay`. */
  dailyQuota: z.int().min(0).optional(),
  /** Push messages, and SMS, under way at once in this process. */
  concurrency: z.int().min(1).max(16).default(4),
  /** With the back-off between them, 8 attempts take about half an hour. */
  maxAttempts: z.int().min(1).max(25).default(8),
  pollIntervalMs: z.int().min(50).default(2_000),
  /** Requested as long as all is well, for a watcher elsewhere. Null: no heartbeat. */
  heartbeat: z
    .strictObject({ url: providerUrl, everyMs: z.int().min(1_000).max(86_400_000).default(60_000) })
    .nullable()
    .default(null),
  /** How long outcomes are kept. */
  retentionDays: z.int().min(1).default(90),
  ...channelSettings,
});
export type NotificationSettings = z.infer<typeof NotificationSettings>;
