import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { prepareService, type ServiceProcess } from '../faults/service-process.ts';
import {
  configuration,
  openApp,
  thresholdPurpose,
  type App,
  type Registration,
} from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { startHookReceiver, type HookReceiver } from '../support/hook-receiver.ts';

const dir = makeTemporaryDir();
let database: TestDatabase;
let service: ServiceProcess;
let receiver: HookReceiver;
let isHanging = false;
let app: App;

beforeAll(async () => {
  database = await testDatabase();
  receiver = await startHookReceiver(() => (isHanging ? 'never' : { status: 204 }));
  const settings = join(dir, 'settings.json');
  writeFileSync(
    settings,
    JSON.stringify({ notifications: { webhooks: { allowPrivateAddresses: true } } }),
  );
  const variables = { DATABASE_URL: database.url, CONFIG_FILE: settings };
  service = await prepareService({ dir, variables });
  await service.start();
  app = await openApp(service.url);
  await app.call('PUT', '/v2/accounts/contacts', { webhooks: [{ url: receiver.url }] });
});
afterAll(async () => {
  await service?.kill();
  await receiver?.close();
  await database?.drop();
});

async function givenDevice(): Promise<Registration> {
  const registration = await app.call<Registration>('POST', '/v2/devices', configuration);
  const purpose = thresholdPurpose(1, 30);
  for (const { events } of purpose.states)
    for (const event of events) Object.assign(event.actions.cloud, { sendPush: true });
  const body = { deviceAuthUuids: [registration.deviceAuthUuid], purposes: [purpose] };
  await app.call('POST', '/v2/devices/profile', body);
  return registration;
}

/** Resolves when the value is acknowledged: stored, with its event and its notifications. */
async function publish(registration: Registration): Promise<void> {
  const device = await connectDevice(registration);
  await device.publish('up/measurements', { sId: '0x01', val: 31 });
  await device.end();
}

const isOf =
  ({ deviceAuthUuid }: Registration) =>
  ({ body }: { body: string }) =>
    body.includes(deviceAuthUuid);

const statesOf = async ({ deviceAuthUuid }: Registration) => {
  const path = `/v2/devices/${deviceAuthUuid}/notifications`;
  const { notifications } = await app.call<{ notifications: { state: string }[] }>('GET', path);
  return notifications.map(({ state }) => state);
};

/** Ends the lease of a process that has ended, so that another may continue. */
const endLease = () => database.db.query('update contact set busy_until = now()');

it('a message that was delivered without its outcome being written comes again with the same webhook-id', async () => {
  const registration = await givenDevice();
  isHanging = true;
  await publish(registration);
  const first = await receiver.request(isOf(registration));
  await service.kill();
  isHanging = false;
  await service.start();
  await endLease();
  await expect.poll(() => statesOf(registration), { timeout: 60_000 }).toEqual(['sent']);
  const both = receiver.received.filter(isOf(registration));
  expect(both).toHaveLength(2);
  expect(both[1]?.headers['webhook-id']).toBe(first.headers['webhook-id']);
  expect(JSON.parse(both[1]?.body ?? '')).toEqual(JSON.parse(first.body));
});

it('a message that was committed and not delivered comes once', async () => {
  const registration = await givenDevice();
  await database.db.query(`update contact set busy_until = now() + interval '1 hour'`);
  await publish(registration);
  await service.kill();
  await service.start();
  expect(receiver.received.filter(isOf(registration))).toEqual([]);
  await endLease();
  await expect.poll(() => statesOf(registration), { timeout: 60_000 }).toEqual(['sent']);
  expect(receiver.received.filter(isOf(registration))).toHaveLength(1);
});
