import { z } from 'zod';

const timeoutMs = z.int().min(100).max(60_000).default(10_000);
const httpUrl = z.url({ protocol: /^https?$/ });

/** Apple's push service. `keyFile`: the .p8 file; `topic`: the app's bundle identifier. */
export const ApnsConfig = z.object({
  keyFile: z.string().min(1),
  keyId: z.string().min(1),
  teamId: z.string().min(1),
  topic: z.string().min(1),
  production: z.boolean().default(true),
  /** Another host with the same protocol, its port, and the certificate authority to trust. */
  address: z.string().optional(),
  port: z.int().optional(),
  caFile: z.string().optional(),
  timeoutMs,
});
export type ApnsConfig = z.infer<typeof ApnsConfig>;

/** Who may send SMS, and to which numbers. */
const smsRules = {
  /** Prefixes of allowed numbers; `!` in front refuses them. The longest match decides. */
  allowedPrefixes: z
    .array(
      z
        .string()
        .regex(/^!?\+\d{0,15}$/, 'expected a prefix such as "+49", or "!+49900" to refuse it'),
    )
    .default(['+']),
  /** Whether accounts may send SMS without permission. Null: only if registration is not open to everybody. */
  forAll: z.boolean().nullable().default(null),
};

/** Posts each SMS as JSON to `url`, signed with the secret in `secretFile`. */
export const WebhookConfig = z.object({
  driver: z.literal('webhook'),
  url: httpUrl,
  secretFile: z.string().min(1),
  timeoutMs,
  ...smsRules,
});
export type WebhookConfig = z.infer<typeof WebhookConfig>;

/** An SMS provider that takes `To`, `From` and `Body` as a form, with basic authentication, as Twilio does. */
export const RestConfig = z.object({
  driver: z.literal('rest'),
  url: httpUrl,
  username: z.string().min(1),
  passwordFile: z.string().min(1),
  from: z.string().min(1),
  timeoutMs,
  ...smsRules,
});
export type RestConfig = z.infer<typeof RestConfig>;

/** Mail settings besides the server, which `SMTP_URL` names. */
const EmailConfig = z.strictObject({
  from: z.string().min(3).max(320).nullable().default(null),
  timeoutMs: z.int().min(1_000).max(30_000).default(15_000),
});

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
    .strictObject({ url: httpUrl, everyMs: z.int().min(1_000).max(86_400_000).default(60_000) })
    .nullable()
    .default(null),
  /** How long outcomes are kept. */
  retentionDays: z.int().min(1).default(90),
  push: ApnsConfig.nullable().default(null),
  email: EmailConfig.prefault({}),
  webhooks: z
    .strictObject({ allowPrivateAddresses: z.boolean().nullable().default(null) })
    .prefault({}),
  sms: z
    .discriminatedUnion('driver', [
      z.object({ driver: z.literal('log'), ...smsRules }),
      WebhookConfig,
      RestConfig,
    ])
    .prefault({ driver: 'log' }),
});
export type NotificationSettings = z.infer<typeof NotificationSettings>;

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
