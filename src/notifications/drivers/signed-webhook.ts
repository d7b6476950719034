import { createHmac } from 'node:crypto';
import { DeliveryError } from './driver.ts';
import { postPublicly, type PostOptions } from './post-publicly.ts';

/** A message to a webhook; `secrets` as `whsec_…`, each of which signs it. */
export type OutgoingHook = { id: number; url: string; secrets: string[]; payload: object };

export type HookDriver = { send: (message: OutgoingHook) => Promise<void> };

/** Posts JSON that is signed as Standard Webhooks has it; `webhook-id` is the same at every attempt. */
export function hookDriver(reach: PostOptions, clock: () => number): HookDriver {
  return {
    send: async ({ id, url, secrets, payload }) => {
      const body = JSON.stringify(payload);
      const webhookId = `msg_${id}`;
      const timestamp = String(Math.floor(clock() / 1_000));
      const signatures = secrets.map((secret) =>
        signature(secret, `${webhookId}.${timestamp}.${body}`),
      );
      const status = await postPublicly(url, {
        ...reach,
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
      // What a receiver cannot take today it may take after its next release.
      const verdict = status < 400 || status === 410 ? 'never' : 'again';
      throw new DeliveryError(verdict, 'receiver-refused', `Answered ${status}`);
    },
  };
}

/** `v1,` and the HMAC with SHA-256 in base64, with the bytes behind `whsec_` as the key. */
function signature(secret: string, content: string): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  return `v1,${createHmac('sha256', key).update(content).digest('base64')}`;
}
