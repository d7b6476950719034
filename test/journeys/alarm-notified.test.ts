import { afterAll, beforeAll, expect, it } from 'vitest';
import { startHookReceiver, type HookReceiver, type Received } from '../support/hook-receiver.ts';
import { configuration, openApp, thresholdPurpose, type App, type Registration } from './app.ts';
import { connectDevice } from './device.ts';
import { testService, type TestService } from './service.ts';

let service: TestService;
let receiver: HookReceiver;
let status = 204;

beforeAll(async () => {
  receiver = await startHookReceiver(() => ({ status }));
  service = await testService(
    {},
    {
      change: (config) => ({
        ...config,
        notifications: {
          ...config.notifications,
          pollIntervalMs: 200,
          maxAttempts: 1,
          webhooks: { allowPrivateAddresses: true },
        },
      }),
    },
  );
});
afterAll(async () => {
  await service?.close();
  await receiver?.close();
});

async function givenDevice(app: App): Promise<Registration> {
  const registration = await app.call<Registration>('POST', '/v2/devices', configuration);
  const purpose = thresholdPurpose(1, 30);
  for (const { events } of purpose.states)
    for (const event of events) Object.assign(event.actions.cloud, { sendPush: true });
  const body = { deviceAuthUuids: [registration.deviceAuthUuid], purposes: [purpose] };
  await app.call('POST', '/v2/devices/profile', body);
  return registration;
}

async function publish(registration: Registration, ...values: number[]): Promise<void> {
  const device = await connectDevice(registration);
  for (const val of values) await device.publish('up/measurements', { sId: '0x01', val });
  await device.end();
}

type AlarmView = {
  alarmId: number;
  state: string;
  told: string;
  notNotified: string | null;
  closedBy: string | null;
  deliveries: { state: string }[];
};
const findAlarm = async (app: App): Promise<AlarmView | undefined> => {
  const { alarms } = await app.call<{ alarms: AlarmView[] }>('GET', '/v2/alarms');
  return alarms[0];
};
const putHook = (app: App, entry: object = {}) =>
  app.call('PUT', '/v2/accounts/contacts', {
    webhooks: [{ url: `${receiver.url}/${app.email}`, ...entry }],
  });
const hooksOf = (app: App) => receiver.received.filter(({ url }) => url === `/${app.email}`);
const typesOf = (received: Received[]) =>
  received.map(({ body }) => (JSON.parse(body) as { type: string }).type);

it('an alarm without a recipient notifies as soon as one is added', async () => {
  const app = await openApp(service.url);
  const registration = await givenDevice(app);
  await publish(registration, 31);
  expect(await findAlarm(app)).toMatchObject({
    state: 'open',
    told: 'none',
    notNotified: 'no-recipient',
  });
  await putHook(app);
  await expect.poll(() => findAlarm(app), { timeout: 60_000 }).toMatchObject({ told: 'told' });
  expect(typesOf(hooksOf(app))).toEqual(['alarm.opened']);
});

it('repeated values over the limit notify once, the next episode notifies again, and so does its end', async () => {
  const app = await openApp(service.url);
  const registration = await givenDevice(app);
  await putHook(app, { whenOver: true });
  await publish(registration, 31, 32, 33);
  await expect.poll(() => findAlarm(app), { timeout: 60_000 }).toMatchObject({ told: 'told' });
  await publish(registration, 20);
  await expect.poll(() => findAlarm(app)).toMatchObject({ state: 'closed', closedBy: 'cleared' });
  await publish(registration, 31);
  const all = ['alarm.opened', 'alarm.closed', 'alarm.opened'];
  await expect.poll(() => typesOf(hooksOf(app)), { timeout: 60_000 }).toEqual(all);
});

it('a notification that every receiver refuses is withdrawn, and the alarm says so', async () => {
  const app = await openApp(service.url);
  const registration = await givenDevice(app);
  await putHook(app);
  status = 500;
  await publish(registration, 31);
  await expect.poll(() => findAlarm(app), { timeout: 60_000 }).toMatchObject({ told: 'withdrawn' });
  status = 204;
  // Another contact does not wait for the pause.
  await putHook(app, { labels: [] });
  await expect.poll(() => findAlarm(app), { timeout: 60_000 }).toMatchObject({ told: 'told' });
  const { deliveries } = (await findAlarm(app)) ?? {};
  expect(deliveries?.map(({ state }) => state)).toEqual(['sent', 'failed']);
});

it('acknowledging an alarm drops planned notifications', async () => {
  const app = await openApp(service.url);
  const registration = await givenDevice(app);
  await app.call('PUT', '/v2/accounts/contacts', {
    webhooks: [{ url: `${receiver.url}/${app.email}`, afterMs: 600_000 }],
  });
  await publish(registration, 31);
  expect(await findAlarm(app)).toMatchObject({ told: 'queued' });
  const { alarmId } = (await findAlarm(app)) ?? { alarmId: 0 };
  await app.call('POST', `/v2/alarms/${alarmId}/acknowledge`);
  expect(await findAlarm(app)).toMatchObject({ state: 'acknowledged', deliveries: [] });
});
