import { createHmac } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import type { Clock } from '../../lib/clock-readings.ts';
import { countSegments, maxSegments } from '../text.ts';
import {
  type Channel,
  type ChannelDeps,
  channelOf,
  type Driver,
  maskStart,
  type NotificationLog,
  type OpenChannel,
} from './channel.ts';
import { post, providerTimeoutMs, providerUrl } from './post.ts';

/** SMS, to the telephone numbers that an action names. */
export const sms: Channel = {
  reaches: 'numbers',
  daily: { kind: 'sms', quota: 'smsPerDay', reason: 'sms-per-day' },
  limitsOf: ({ recipient }, { smsPerNumber, smsPerInstallation }) => [
    {
      kind: 'number',
      accountId: 0,
      key: recipient,
      limit: smsPerNumber,
      reason: 'sms-per-number',
    },
    {
      kind: 'installation',
      accountId: 0,
      key: '',
      limit: smsPerInstallation,
      reason: 'sms-per-installation',
    },
  ],
  unconfigured: 'no-sms-provider',
  mask: maskStart,
  shorten({ title, body }) {
    const lines = [title, ...body.split('\n')];
    while (lines.length > 1 && countSegments(lines.join('\n')) > maxSegments) lines.pop();
    return lines.join('\n');
  },
  places: (concurrency) => ({ sms: concurrency }),
};

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
const WebhookConfig = z.object({
  driver: z.literal('webhook'),
  url: providerUrl,
  secretFile: z.string().min(1),
  timeoutMs: providerTimeoutMs,
  ...smsRules,
});

/** An SMS provider that takes `To`, `From` and `Body` as a form, with basic authentication, as Twilio does. */
const RestConfig = z.object({
  driver: z.literal('rest'),
  url: providerUrl,
  username: z.string().min(1),
  passwordFile: z.string().min(1),
  from: z.string().min(1),
  timeoutMs: providerTimeoutMs,
  ...smsRules,
});

export const smsSettings = z
  .discriminatedUnion('driver', [
    z.object({ driver: z.literal('log'), ...smsRules }),
    WebhookConfig,
    RestConfig,
  ])
  .prefault({ driver: 'log' });
type SmsSettings = z.infer<typeof smsSettings>;

/** Rejects if a secret cannot be read. */
export async function openSms(
  settings: SmsSettings,
  { log, clock }: Pick<ChannelDeps, 'log' | 'clock'>,
): Promise<OpenChannel> {
  switch (settings.driver) {
    case 'webhook': {
      const secret = await readSecret(settings.secretFile);
      return channelOf(webhookDriver(settings, secret, clock), settings.timeoutMs);
    }
    case 'rest': {
      const password = await readSecret(settings.passwordFile);
      return channelOf(restDriver(settings, password, clock), settings.timeoutMs);
    }
    case 'log':
      return channelOf(logDriver(log), 0);
  }
}

/** Editors end a file with a line break that is not part of the secret. */
async function readSecret(file: string): Promise<string> {
  return (await readFile(file, 'utf8')).trim();
}

/** Writes SMS to the log and reaches nobody: for trying the service out. */
function logDriver(log: NotificationLog): Driver {
  return {
    name: 'log',
    isLog: true,
    send: async ({ id, body }) => {
      log.info(
        { event: 'notification.logged', notificationId: id, text: body },
        'An SMS was only written to the log.',
      );
    },
    close: async () => {},
  };
}

/** Sends SMS through a provider that takes a form with `To`, `From` and `Body`, as Twilio's Messages resource does. */
function restDriver(
  { url, username, from, timeoutMs }: z.infer<typeof RestConfig>,
  password: string,
  clock: Clock,
): Driver {
  const credentials = Buffer.from(`${username}:${password}`).toString('base64');
  const headers = {
    Authorization: `Basic ${credentials}`,
    'Content-Type': 'application/x-www-form-urlencoded',
  };
  return {
    name: 'rest',
    send: ({ recipient, body: text }) => {
      const body = new URLSearchParams({ To: recipient, From: from, Body: text }).toString();
      return post(url, { headers, body, timeoutMs, clock, secrets: [password, credentials] });
    },
    close: async () => {},
  };
}

/**
 * Posts each SMS as JSON to the operator's URL. `X-Signature` authenticates it: `sha256=` and the hexadecimal HMAC of
 * `<X-Timestamp>.<body>` with the shared secret. `Idempotency-Key` is the same for every attempt.
 */
function webhookDriver(
  { url, timeoutMs }: z.infer<typeof WebhookConfig>,
  secret: string,
  clock: Clock,
): Driver {
  return {
    name: 'webhook',
    send: async ({ id, recipient, body: text, data }) => {
      const body = JSON.stringify({ notificationId: id, phoneNumber: recipient, text, ...data });
      const timestamp = String(clock());
      const signature = createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex');
      const headers = {
        'Content-Type': 'application/json',
        'Idempotency-Key': `notification-${id}`,
        'X-Timestamp': timestamp,
        'X-Signature': `sha256=${signature}`,
      };
      await post(url, { headers, body, timeoutMs, clock, secrets: [secret] });
    },
    close: async () => {},
  };
}
