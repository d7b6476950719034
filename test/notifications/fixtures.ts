import type { SenseEvent } from '../../src/contract/event.ts';
import type { Database } from '../../src/db/database.ts';
import type { Sql } from '../../src/db/sql.ts';
import {
  type ContactOptions,
  type Delivery,
  DeliveryError,
  type Driver,
  type DriverVerdict,
  type MessageQuotas,
  type OutgoingMessage,
} from '../../src/notifications/channels/channel.ts';
import { enqueueNotifications } from '../../src/notifications/enqueue.ts';
import type { Notifications } from '../../src/notifications/notifications.ts';
import type { RequestInfo } from '../../src/http/request.ts';
import { notificationRoutes, type NotificationOutcome } from '../../src/notifications/routes.ts';
import type { NewNotification } from '../../src/contract/actions.ts';

/** As in config/. */
export const quotas: MessageQuotas = {
  messagesPerDay: 1_000,
  messagesPerRecipient: 200,
  webhooksPerDay: 10_000,
  smsPerDay: 20,
  smsPerNumber: 20,
  smsPerInstallation: 1_000,
  confirmationsPerNetwork: 100,
  confirmationsPerInstallation: 1_000,
};

/** Contacts without a mail server. */
export const contacts: ContactOptions = {
  linkKeys: [Buffer.alloc(32, 'links')],
  webhookKeys: [Buffer.alloc(32, 'webhooks')],
  publicUrl: () => 'http://127.0.0.1',
  apiUrl: 'https://sensorium.example.org',
  hasConsole: true,
  findEventId: async () => undefined,
  email: null,
  isPrivateAllowed: true,
};

export const silent = { debug: () => {}, info: () => {}, warn: () => {} };

export type Owner = { accountId: number; deviceId: number; deviceUuid: string };

/** An account with these push tokens that may send SMS, and one of its devices. */
export async function givenDevice(
  db: Database,
  tokens: string[] = [],
  maySendSms = true,
): Promise<Owner> {
  const account = await db.query<{ id: number }>(
    `insert into account (email, password_hash, apn, may_send_sms)
     values (gen_random_uuid() || '@example.com', 'none', $1, $2) returning id`,
    [JSON.stringify(tokens.map((token) => ({ token }))), maySendSms],
  );
  const accountId = account.rows[0]?.id ?? 0;
  const device = await db.query<{ id: number; uuid: string }>(
    `insert into device (account_id, connector_id, name, configuration)
     values ($1, 1, 'Cellar', '{"device": {"name": "Cellar"}, "module": []}') returning id, uuid`,
    [accountId],
  );
  const { id: deviceId = 0, uuid: deviceUuid = '' } = device.rows[0] ?? {};
  return { accountId, deviceId, deviceUuid };
}

export const event: SenseEvent = {
  type: 'sense',
  ts: 1_000,
  cause: {
    engine: { pId: 'p', puId: 1, stId: 2, evId: 3, ts: 1_000 },
    senses: [{ sId: '0x1', val: 21.5, ts: 1_000 }],
  },
};

export function pushOf(owner: Owner, name = 'Too warm'): NewNotification {
  return { ...owner, event, kind: 'push', name };
}

export function smsOf(owner: Owner, phoneNumber: string, text = 'Come home'): NewNotification {
  return { ...owner, event, kind: 'sms', name: 'Too warm', phoneNumber, text };
}

/** Adds what queues notifications as a firing of no alarm does. */
export const withEnqueue = (outbox: Notifications, clock: () => number) => ({
  ...outbox,
  enqueue: (tx: Sql, asked: Iterable<NewNotification>) =>
    enqueueNotifications(tx, asked, { ...outbox.rules, nowTs: clock() }),
});

/** A message as it is handed to its channel: of the event above, of a device called `u`. */
export function deliveryOf(of: Pick<Delivery, 'kind' | 'recipient' | 'title' | 'body'>): Delivery {
  return {
    ...of,
    id: 7,
    accountId: 1,
    lane: of.kind,
    host: null,
    contactId: null,
    contactUuid: null,
    type: 'notice',
    engine: event.cause.engine,
    data: null,
    deviceUuid: 'u',
    deviceName: 'Cellar',
    language: null,
    timeZone: null,
    createdTs: event.ts,
    attempts: 1,
    isRepeated: false,
    isDisabled: false,
    isConfirmed: true,
    isUnsubscribed: false,
    isSuiting: true,
    alarmId: null,
    announcement: null,
    isGathering: false,
    isCounted: true,
  };
}

/** A driver that gives the scripted answers, one for each attempt, and records the messages. */
export function scriptedDriver(answers: ('ok' | DriverVerdict)[] = []) {
  const sent: OutgoingMessage[] = [];
  const driver: Driver = {
    name: 'scripted',
    send: async (message) => {
      sent.push(message);
      const answer = answers.shift() ?? 'ok';
      if (answer !== 'ok') throw new DeliveryError(answer, 'provider-busy', `said ${answer}`);
    },
    close: async () => {},
  };
  return { driver, sent };
}

/** Resolves with a device's outcomes once `until` accepts them. */
export async function outcomesOf(
  db: Database,
  { accountId, deviceId, deviceUuid }: Owner,
  until: (outcomes: NotificationOutcome[]) => boolean = () => true,
): Promise<NotificationOutcome[]> {
  const [route] = notificationRoutes({ db, findDeviceId: async () => deviceId });
  const account = { accountId, accountUuid: '', sessionId: '' };
  const request = { now: Date.now } as unknown as RequestInfo;
  const params = { deviceAuthUuid: deviceUuid };
  const asked = { params, account, request, query: { limit: '100' }, body: undefined };
  for (;;) {
    const answer = await route?.call(asked);
    const { notifications: outcomes } = answer as { notifications: NotificationOutcome[] };
    if (until(outcomes)) return outcomes;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Ends the back-off of a device's messages that have had this many attempts. */
export async function skipBackOff(
  db: Database,
  { deviceId }: Owner,
  attempts: number,
): Promise<void> {
  await db.query(
    `with due as (
       update notification set due_at = least(due_at, created_at)
        where state = 'queued' and device_id = $1 and attempts = $2 returning id
     )
     select pg_notify('sensorium_due', '') from due limit 1`,
    [deviceId, attempts],
  );
}
