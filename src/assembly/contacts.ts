import { lockAlarms } from '../alarms/outcome.ts';
import { wakeAlarms } from '../alarms/timer/queries.ts';
import type { Config } from '../config/config.ts';
import { makeContactToken, type LinkPurpose } from '../contacts/links.ts';
import { contactRoutes } from '../contacts/routes.ts';
import { webhookSecrets } from '../contacts/webhook-secret.ts';
import { findEventId } from '../events/find-event-id.ts';
import type { Route } from '../http/route.ts';
import { network } from '../lib/network.ts';
import type { ContactOptions } from '../notifications/delivery-side.ts';
import { endAnnouncement } from '../notifications/end-announcement.ts';
import { enqueueDirect } from '../notifications/enqueue-direct.ts';
import { alarmPortOf } from './people.ts';
import type { Shared } from './shared.ts';

/** Where not everybody can register, accounts belong to people who could reach the network anyway. */
function isPrivateAllowed({ accounts, notifications }: Config): boolean {
  return notifications.webhooks.allowPrivateAddresses ?? !accounts.openRegistration;
}

/** How mails are sent from here; null: no mail server is configured. */
export function mailOptions({
  config,
  publicUrl,
}: Pick<Shared, 'config' | 'publicUrl'>): ContactOptions['email'] {
  const { email } = config.notifications;
  const { hostname } = new URL(publicUrl.get());
  const host = /^[\d.]+$|^\[/.test(hostname) ? 'localhost' : hostname;
  const from = email.from ?? `Sensorium <sensorium@${host}>`;
  if (config.smtpUrl === null) return null;
  return { smtpUrl: config.smtpUrl, from, timeoutMs: email.timeoutMs };
}

/** How messages get to contacts. */
export function contactOptions(shared: Shared): ContactOptions {
  const { config, db, keys, clock, publicUrl } = shared;
  const linkOf = (purpose: LinkPurpose) => (contactUuid: string) => {
    const token = makeContactToken(keys.mailLinks, purpose, { contactUuid, nowMs: clock() });
    return `${publicUrl.get()}/${purpose}?token=${token}`;
  };
  return {
    keys: {
      confirmUrl: linkOf('confirm'),
      unsubscribeUrl: linkOf('unsubscribe'),
      webhookSecrets: (contactUuid) => webhookSecrets(keys.webhookSecrets, contactUuid),
      alarmUrl: (alarmId) =>
        config.publicUrl === null ? undefined : `${config.publicUrl}/v2/alarms/${alarmId}`,
      deviceUrl: (deviceUuid) =>
        config.console.enabled ? `${publicUrl.get()}/console/devices/${deviceUuid}` : undefined,
    },
    findEventId: (deviceUuid, cause) => findEventId(db, deviceUuid, cause),
    email: mailOptions(shared),
    isPrivateAllowed: isPrivateAllowed(config),
  };
}

/** Labels of devices of an account changed: alarms may have a recipient now, streams other devices. */
export const createOnLabelled =
  ({ db, bus }: Pick<Shared, 'db' | 'bus'>) =>
  async (accountId: number, nowTs: number): Promise<void> => {
    await wakeAlarms(db, accountId, nowTs);
    bus.publish('labels', { accountId });
  };

/** The routes of contacts, and the pages that links in mails lead to. */
export function listContactRoutes(shared: Shared): Route[] {
  const { config, db, keys, clock, limitsOf } = shared;
  const alarms = alarmPortOf(shared);
  return contactRoutes({
    alarms: {
      lock: lockAlarms,
      ended: async (tx, messages, nowTs) => {
        for (const message of messages) await endAnnouncement(tx, message, { alarms, nowTs });
      },
      wake: wakeAlarms,
    },
    db,
    onLabelled: createOnLabelled(shared),
    limitsOf,
    linkKeys: keys.mailLinks,
    webhookKeys: keys.webhookSecrets,
    isPrivateAllowed: isPrivateAllowed(config),
    sendToContacts: (tx, accountId, messages, address) =>
      enqueueDirect(tx, accountId, messages, {
        quotasOf: limitsOf,
        nowMs: clock(),
        network: network(address),
        isOpen: config.accounts.openRegistration,
      }),
  });
}
