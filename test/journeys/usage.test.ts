import { afterAll, beforeAll, expect, it } from 'vitest';
import { configuration, openApp, thresholdPurpose, type Registration } from './app.ts';
import { connectDevice } from './device.ts';
import { testService, type TestService } from './service.ts';

let service: TestService;
beforeAll(async () => {
  service = await testService(
    {},
    {
      change: (config) => ({ ...config, quotas: { ...config.quotas, eventsPerDay: 2 } }),
    },
  );
});
afterAll(() => service.close());

type Usage = { usage: { quota: string; limit: number; used: number | null }[] };

it("an account sees what it uses; events beyond a day's quota are counted, not recorded", async () => {
  const app = await openApp(service.url);
  const registration = await app.call<Registration>('POST', '/v2/devices', configuration);
  const uuid = registration.deviceAuthUuid;
  await app.call('POST', '/v2/purposes', thresholdPurpose(1, 30));
  await app.call('POST', '/v2/devices/profile', {
    deviceAuthUuids: [uuid],
    purposes: [thresholdPurpose(1, 30)],
  });
  const device = await connectDevice(registration);
  for (const val of [31, 32, 33, 34, 35])
    await device.publish('up/measurements', { sId: '0x01', val });
  await device.end();

  const usage = async () => {
    const answer = await app.call<Usage>('GET', '/v2/accounts/usage');
    return Object.fromEntries(answer.usage.map(({ quota, ...rest }) => [quota, rest]));
  };
  await expect
    .poll(async () => (await usage())['eventsPerDay'], { timeout: 60_000, interval: 200 })
    .toEqual({ limit: 2, used: 5, level: 'used-up' });
  expect(await usage()).toMatchObject({
    devices: { limit: 10_000, used: 1 },
    purposes: { used: 1 },
    profiles: { used: 1 },
    sessions: { limit: 50, used: 2 },
    requestsPerSecond: { limit: 200, used: null },
    nameLength: { limit: 200, used: null },
  });
  expect((await usage())['storedBytes']?.used).toBeGreaterThan(5 * 100 + 2 * 1_400);
  const { events } = await app.call<{ events: unknown[] }>('GET', `/v2/events/${uuid}?type=sense`);
  expect(events).toHaveLength(2);
  const { rejections } = await app.call<{ rejections: { reason: string }[] }>(
    'GET',
    `/v2/devices/${uuid}/rejections`,
  );
  expect(rejections.map(({ reason }) => reason)).toEqual(['events-not-recorded']);
});
