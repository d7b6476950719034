import { createHmac } from 'node:crypto';
import { z } from 'zod';
import type { Clock } from '../../lib/clock-readings.ts';
import type { Reason } from '../reasons.ts';
import { type HookLinks, hookPayload } from '../webhook-docs.ts';
import {
  type Channel,
  type ChannelDeps,
  type Delivery,
  DeliveryError,
  type OpenChannel,
} from './channel.ts';
import { type PostOptions, postPublicly, readRetryAfter } from './post.ts';

/** Webhooks, which accounts enter among their contacts. */
export const webhook: Channel = {
  reaches: 'contacts',
  isForPrograms: true,
  daily: { kind: 'webhook', quota: 'webhooksPerDay', reason: 'webhooks-per-day' },
  unconfigured: 'no-provider',
  mask: (url) => URL.parse(url)?.host ?? '…',
  // A slow receiver costs a socket. A webhook that was never tried has fewer places, and one that did not answer the
  // last time has few.
  places: () => ({ webhook: 512, 'webhook-new': 256, 'webhook-unanswered': 16 }),
};

export const webhookSettings = z
  .strictObject({ allowPrivateAddresses: z.boolean().nullable().default(null) })
  .prefault({});

const timeoutMs = 5_000;
const hastyMs = 1_500;

/** Needs no settings, so every process has it. */
export function openWebhooks(deps: ChannelDeps): OpenChannel {
  const { isPrivateAllowed, lookupAll, clock, webhookKeys } = deps;
  const reach = { isPrivateAllowed, timeoutMs, ...(lookupAll ? { lookupAll } : {}) };
  const driver = hookDriver(reach, clock);
  return {
    via: 'webhook',
    timeoutMs,
    async send(delivery) {
      const { id, recipient: url, contactUuid } = delivery;
      const secrets = webhookSecrets(webhookKeys, contactUuid ?? '');
      const payload = hookPayload(delivery, await linksOf(deps, delivery));
      await driver.send({ id, url, secrets, payload, timeoutMs: timeoutOf(delivery) });
    },
    close: async () => {},
  };
}

async function linksOf(
  { findEventId, apiUrl }: ChannelDeps,
  { deviceUuid, data, alarmId }: Delivery,
): Promise<HookLinks> {
  return {
    eventId: deviceUuid !== null && data ? await findEventId(deviceUuid, data) : undefined,
    alarmUrl: alarmId === null || apiUrl === null ? undefined : `${apiUrl}/v2/alarms/${alarmId}`,
  };
}

/**
 * A webhook that did not answer the last time gets a short timeout, except at every third attempt: so a slow receiver
 * is reached as well, and one that hangs costs little. Undefined: the usual timeout.
 */
const timeoutOf = ({ lane, attempts }: Delivery): number | undefined =>
  lane === 'webhook-unanswered' && attempts % 3 !== 0 ? hastyMs : undefined;

/** A message to a webhook. It is signed with each of `secrets` (`whsec_…`). `timeoutMs` shortens the usual timeout. */
type OutgoingHook = {
  id: number;
  url: string;
  secrets: string[];
  payload: object;
  timeoutMs?: number | undefined;
};

type HookDriver = { send: (message: OutgoingHook) => Promise<void> };

/** Posts JSON, signed according to Standard Webhooks; `webhook-id` is the same for every attempt. */
export function hookDriver(reach: PostOptions, clock: Clock): HookDriver {
  return {
    send: async ({ id, url, secrets, payload, timeoutMs: ownTimeoutMs }) => {
      const body = JSON.stringify(payload);
      const webhookId = `msg_${id}`;
      const timestamp = String(Math.floor(clock() / 1_000));
      const signatures = secrets.map((secret) =>
        signature(secret, `${webhookId}.${timestamp}.${body}`),
      );
      const { status, retryAfter } = await postPublicly(url, {
        ...reach,
        timeoutMs: ownTimeoutMs ?? reach.timeoutMs,
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

const secretBytes = 24;

/**
 * The secrets that sign messages to a webhook, as Standard Webhooks writes them (`whsec_` and base64); its account sees
 * the first. They are derived, so none is stored: after a change of SECRET, the one from SECRET_PREVIOUS signs as well.
 */
export function webhookSecrets(keys: readonly Buffer[], webhookId: string): string[] {
  return keys.map((key) => {
    const digest = createHmac('sha256', key).update(webhookId).digest();
    return `whsec_${digest.subarray(0, secretBytes).toString('base64')}`;
  });
}
