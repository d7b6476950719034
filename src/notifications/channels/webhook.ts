import { createHmac } from 'node:crypto';
import { DeliveryError, type PostOptions, postPublicly, readRetryAfter } from './channel.ts';
import type { Reason } from '../reasons.ts';
import type { Clock } from '../../lib/clock-readings.ts';

/** A message to a webhook. It is signed with each of `secrets` (`whsec_…`). `timeoutMs` shortens the usual timeout. */
export type OutgoingHook = {
  id: number;
  url: string;
  secrets: string[];
  payload: object;
  timeoutMs?: number | undefined;
};

export type HookDriver = { send: (message: OutgoingHook) => Promise<void> };

/** Posts JSON, signed according to Standard Webhooks; `webhook-id` is the same for every attempt. */
export function hookDriver(reach: PostOptions, clock: Clock): HookDriver {
  return {
    send: async ({ id, url, secrets, payload, timeoutMs = reach.timeoutMs }) => {
      const body = JSON.stringify(payload);
      const webhookId = `msg_${id}`;
      const timestamp = String(Math.floor(clock() / 1_000));
      const signatures = secrets.map((secret) =>
        signature(secret, `${webhookId}.${timestamp}.${body}`),
      );
      const { status, retryAfter } = await postPublicly(url, {
        ...reach,
        timeoutMs,
        body,
        headers: {
          'Content-Type': 'application/json',
          'User-Agent': 'Sensorium',
          'webhook-id': webhookId,
          'webhook-timestamp': timestamp,
          'webhook-signature': signatures.join(' '),
        },
      });
      if (status >= 200 && status < 300) return;
      const [verdict, reason] = verdictOfReceiver(status);
      const retryAfterMs = readRetryAfter(retryAfter, clock());
      throw new DeliveryError(verdict, reason, `Answered ${status}`, { retryAfterMs });
    },
  };
}

/**
 * RFC 9110: 301 and 308 mean moved for good, 410 gone for good. Any other refusal may pass: the receiver's next release
 * may accept the message, and a temporary redirect may end.
 */
function verdictOfReceiver(status: number): ['again' | 'never', Reason] {
  if (status === 301 || status === 308) return ['never', 'receiver-moved'];
  if (status === 410) return ['never', 'receiver-gone'];
  return ['again', 'receiver-refused'];
}

/** `v1,` and the HMAC-SHA-256 in base64; the key is the bytes that follow `whsec_`. */
function signature(secret: string, content: string): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  return `v1,${createHmac('sha256', key).update(content).digest('base64')}`;
}
