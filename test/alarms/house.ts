import type { Config } from '../../src/config/config.ts';
import type { ListedAlarm } from '../../src/alarms/routes.ts';
import { configuration, openApp, type App, type Registration } from '../journeys/app.ts';
import { connectDevice, type TestDevice } from '../journeys/device.ts';
import { testService, type TestService } from '../journeys/service.ts';
import { startHookReceiver, type HookReceiver } from '../support/hook-receiver.ts';

export type Told = { type: string; data: { alarmId: number | null; evId: number } };

/** A service, devices, and somebody who is notified by a webhook. */
export type House = {
  service: TestService;
  app: App;
  receiver: HookReceiver;
  ends: (() => Promise<unknown>)[];
};

/** Webhooks on this machine are allowed. */
export const change = (config: Config): Config => ({
  ...config,
  notifications: {
    ...config.notifications,
    pollIntervalMs: 100,
    webhooks: { ...config.notifications.webhooks, allowPrivateAddresses: true },
  },
});

export async function openHouse(
  ends: House['ends'],
  variables: Record<string, string> = {},
): Promise<House> {
  const service = await testService(variables, { change });
  ends.push(service.close);
  const receiver = await startHookReceiver();
  ends.push(receiver.close);
  const app = await openApp(service.url);
  return { service, app, receiver, ends };
}

/** From now on the receiver's webhook is the account's only contact. */
export const addWebhook = ({ app, receiver }: House) =>
  app.call('PUT', '/v2/accounts/contacts', { emails: [], webhooks: [{ url: receiver.url }] });

export type Freezer = { registration: Registration; uuid: string; device: TestDevice };

/** A device with these purposes installed. */
export async function addDevice(house: House, purposes: object[]): Promise<Freezer> {
  const { app, ends } = house;
  const registration = await app.call<Registration>('POST', '/v2/devices', configuration);
  const { deviceAuthUuid: uuid } = registration;
  const device = await connectDevice(registration);
  ends.push(device.end);
  await app.call('POST', '/v2/devices/profile', { deviceAuthUuids: [uuid], purposes });
  return { registration, uuid, device };
}

/** An alarm above 8. `more`: members of its actions. */
export const tooWarm = (more: object = {}, eventMore: object = {}) => ({
  puId: 1,
  name: 'freezer',
  initStId: 1,
  states: [
    {
      stId: 1,
      name: 'cold',
      events: [
        {
          evId: 1,
          name: 'too warm',
          eventLog: true,
          actions: { cloud: { sendPush: true }, ...more },
          causes: [{ sId: '0x01', thresholds: { isGt: 8 } }],
          ...eventMore,
        },
      ],
    },
    { stId: 2, name: 'warm', events: [] },
  ],
});

export const send = ({ device }: Freezer, val: number, ts?: number) =>
  device.publish('up/measurements', { sId: '0x01', val, ...(ts === undefined ? {} : { ts }) });

/** Newest first. */
export async function listAlarms({ app }: House, query = ''): Promise<ListedAlarm[]> {
  const { alarms } = await app.call<{ alarms: ListedAlarm[] }>('GET', `/v2/alarms${query}`);
  return alarms;
}

type ListedEvent = { notified?: boolean; notNotified?: string };

/** Oldest first: `told`, or the reason why not. */
export async function whatEventsSay({ app }: House, { uuid }: Freezer): Promise<string[]> {
  const { events } = await app.call<{ events: ListedEvent[] }>(
    'GET',
    `/v2/events/${uuid}?type=sense&limit=10`,
  );
  return events
    .map(({ notified, notNotified }) => (notified ? 'told' : (notNotified ?? 'nothing')))
    .toReversed();
}

/** The messages that the webhook received. */
export const received = ({ receiver }: House): Told[] =>
  receiver.received.map(({ body }) => JSON.parse(body) as Told);
