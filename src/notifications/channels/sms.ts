import { createHmac } from 'node:crypto';
import { post } from '../drivers/post.ts';
import type { WebhookConfig } from '../settings.ts';
import type { Driver } from './channel.ts';

/**
 * Posts each SMS as JSON to an address of the operator's. The receiver knows it by `X-Signature`,
 * `sha256=` and the hexadecimal HMAC of `<X-Timestamp>.<body>` with the shared secret;
 * `Idempotency-Key` is the same at every attempt.
 */
export function webhookDriver(
  { url, timeoutMs }: WebhookConfig,
  secret: string,
  clock: () => number,
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
