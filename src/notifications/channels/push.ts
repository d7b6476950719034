import { Notification, Provider, type ResponseFailure } from '@parse/node-apn';
import type { ApnsConfig } from '../settings.ts';
import {
  DeliveryError,
  type Driver,
  type OutgoingMessage,
  reasonOf,
  verdictOf,
} from './channel.ts';

export type ApnsSecrets = { key: Buffer; ca: Buffer | undefined };

/** Apple's push service over HTTP/2, with a provider token. Connects when the first message is sent. */
export function apnsDriver(config: ApnsConfig, { key, ca }: ApnsSecrets): Driver {
  const { keyId, teamId, topic, production, address, port, timeoutMs } = config;
  const provider = new Provider({
    token: { key, keyId, teamId },
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
      const { failed } = await provider.send(compose(message, topic), message.recipient);
      if (failed[0]) throw failureOf(failed[0]);
    },
    close: () => provider.shutdown(),
  };
}

function compose({ id, title, body, data }: OutgoingMessage, topic: string): Notification {
  const notification = new Notification();
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
