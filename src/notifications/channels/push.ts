import { readFile } from 'node:fs/promises';
import type { Notification, ResponseFailure } from '@parse/node-apn';
import { z } from 'zod';
import {
  type Channel,
  channelOf,
  DeliveryError,
  type Driver,
  maskStart,
  messagesPerDay,
  type OpenChannel,
  type OutgoingMessage,
  perRecipient,
} from './channel.ts';
import { providerTimeoutMs, reasonOf, verdictOf } from './post.ts';

/** Push messages to the phones of an account, by their tokens. */
export const push: Channel = {
  reaches: 'tokens',
  daily: messagesPerDay,
  limitsOf: (message, quotas) => [perRecipient(message, quotas)],
  unconfigured: 'no-provider',
  mask: maskStart,
  places: (concurrency) => ({ push: concurrency }),
};

/** Apple's push service. `keyFile`: the .p8 file; `topic`: the app's bundle identifier. Null: no push. */
export const pushSettings = z
  .object({
    keyFile: z.string().min(1),
    keyId: z.string().min(1),
    teamId: z.string().min(1),
    topic: z.string().min(1),
    production: z.boolean().default(true),
    /** Another host with the same protocol, its port, and the certificate authority to trust. */
    address: z.string().optional(),
    port: z.int().optional(),
    caFile: z.string().optional(),
    timeoutMs: providerTimeoutMs,
  })
  .nullable()
  .default(null);
type PushSettings = z.infer<typeof pushSettings>;

/** Null if push is not configured. Rejects if the key or the certificate authority cannot be read. */
export async function openPush(settings: PushSettings): Promise<OpenChannel | null> {
  return settings && channelOf(await apnsDriver(settings), settings.timeoutMs);
}

/** Apple's push service over HTTP/2, with a provider token. Connects when the first message is sent. */
async function apnsDriver(settings: NonNullable<PushSettings>): Promise<Driver> {
  const { keyFile, keyId, teamId, topic, production, address, port, caFile, timeoutMs } = settings;
  // Loading this takes a tenth of the time to start, and few installations use it.
  const apn = await import('@parse/node-apn');
  const ca = caFile === undefined ? undefined : await readFile(caFile);
  const provider = new apn.Provider({
    token: { key: await readFile(keyFile), keyId, teamId },
    production,
    requestTimeout: timeoutMs,
    // The outbox counts and spaces the attempts.
    connectionRetryLimit: 0,
    ...(address === undefined ? {} : { address }),
    ...(port === undefined ? {} : { port }),
    ...(ca === undefined ? {} : { ca: [ca] }),
  });
  return {
    name: 'apns',
    send: async (message) => {
      const notification = compose(new apn.Notification(), message, topic);
      const { failed } = await provider.send(notification, message.recipient);
      if (failed[0]) throw failureOf(failed[0]);
    },
    close: () => provider.shutdown(),
  };
}

function compose(
  notification: Notification,
  { id, title, body, data }: OutgoingMessage,
  topic: string,
): Notification {
  notification.topic = topic;
  notification.pushType = 'alert';
  notification.alert = { title, body };
  notification.sound = 'default';
  notification.payload = data;
  // A repeated delivery replaces the first instead of appearing beside it.
  notification.collapseId = `notification-${id}`;
  return notification;
}

/** Apple answers 410 if the token is gone; other 4xx statuses are permanent. */
function failureOf({ status, response, error }: ResponseFailure): DeliveryError {
  if (status === undefined) {
    return new DeliveryError('again', 'no-answer', error?.message ?? 'unknown', {
      cause: error,
    });
  }
  const reason = response?.reason ?? 'no reason given';
  return new DeliveryError(verdictOf(status), reasonOf(status), `Answered ${status}: ${reason}`);
}
