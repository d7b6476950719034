import { createHmac } from 'node:crypto';
import type { NotificationLog } from '../log.ts';
import type { RestConfig, WebhookConfig } from '../settings.ts';
import { DeliveryError, type Driver, post } from './channel.ts';
import type { Clock } from '../../lib/clock-readings.ts';

/** Writes SMS to the log and reaches nobody: for trying the service out. */
export function logDriver(log: NotificationLog): Driver {
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

/** Used if no push service is configured: it fails every message with that reason. */
export function noPushDriver(): Driver {
  return {
    name: 'none',
    send: async () => {
      throw new DeliveryError('never', 'no-provider', 'No push service is configured.');
    },
    close: async () => {},
  };
}

/** Sends SMS through a provider that takes a form with `To`, `From` and `Body`, as Twilio's Messages resource does. */
export function restDriver(
  { url, username, from, timeoutMs }: RestConfig,
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
export function webhookDriver(
  { url, timeoutMs }: WebhookConfig,
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
