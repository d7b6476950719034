import { afterEach, expect, it } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { saveOverride } from '../../src/quotas/quotas.ts';
import { testDatabase } from '../support/database.ts';
import { configuration, openApp, thresholdPurpose, type App, type Registration } from './app.ts';
import { connectDevice } from './device.ts';
import { testService } from './service.ts';

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

const within = (quotas: Partial<Config['quotas']>) => ({
  change: (config: Config): Config => ({ ...config, quotas: { ...config.quotas, ...quotas } }),
});

/** Records any measurement. */
const cause = { sId: '0x01', thresholds: { isAny: true } };
const recorder = {
  ...thresholdPurpose(1, 0),
  states: [{ stId: 1, events: [{ evId: 1, eventLog: true, causes: [cause] }] }],
};

async function register(app: App): Promise<Registration> {
  const registration = await app.call<Registration>('POST', '/v2/devices', configuration);
  const deviceAuthUuids = [registration.deviceAuthUuid];
  await app.call('POST', '/v2/devices/profile', { deviceAuthUuids, purposes: [recorder] });
  return registration;
}

const countValues = async (app: App, uuid: string) =>
  (await app.call<{ measurements: unknown[] }>('GET', `/v2/measurements/${uuid}?limit=1000`))
    .measurements.length;

it('beyond storedBytes measurements wait, unacknowledged, until the quota is raised', async () => {
  const database = await testDatabase();
  ends.push(database.drop);
  const variables = { DATABASE_URL: database.url };
  const before = await testService(variables);
  const app = await openApp(before.url);
  const registration = await register(app);
  await before.close();

  // Its profile alone exceeds that, but an account with nothing stored yet is not full.
  const service = await testService(variables, within({ storedBytes: 10 }));
  ends.push(service.close);
  const uuid = registration.deviceAuthUuid;
  const own = await openApp(service.url);
  const device = await connectDevice({ ...registration, port: service.mqttPort });
  const other = await connectDevice(await register(own));
  ends.push(device.end, other.end);
  let acknowledged = 0;
  const waiting = [1, 2].map((val) =>
    device.publish('up/measurements', { sId: '0x01', val }).then(() => (acknowledged += 1)),
  );
  const rejections = async () => {
    const { rows } = await database.db.query<{ reason: string }>(
      `select reason from rejection r join device d on d.id = r.device_id where d.uuid = $1`,
      [uuid],
    );
    return rows.map(({ reason }) => reason);
  };
  const countStored = async () =>
    (await database.db.query('select from measurement')).rowCount ?? 0;
  await expect.poll(rejections, { timeout: 60_000 }).toEqual(['quota-exceeded']);
  await other.publish('up/measurements', { sId: '0x01', val: 1 });
  expect([acknowledged, await countStored()]).toEqual([0, 1]);

  const { rows } = await database.db.query<{ id: number }>(
    'select account_id as id from device where uuid = $1',
    [uuid],
  );
  await saveOverride(database.db, rows[0]?.id ?? 0, 'storedBytes', 1_000_000_000);
  await Promise.all(waiting);
  expect(await countStored()).toBe(3);
  expect(await rejections()).toEqual(['quota-exceeded']);
});

it("beyond eventsPerSecond an account's devices wait; none of their events is lost, and others do not wait", async () => {
  const service = await testService({}, within({ eventsPerSecond: 100 }));
  ends.push(service.close);
  const [busy, calm] = [await openApp(service.url), await openApp(service.url)];
  const registration = await register(busy);
  const [device, other] = await Promise.all([
    connectDevice(registration),
    connectDevice(await register(calm)),
  ]);
  ends.push(device.end, other.end);
  let acknowledged = 0;
  const nowTs = Date.now();
  const publish = async (from: number, count: number) => {
    const message = Array.from({ length: count }, (_, n) => ({
      sId: '0x01',
      val: 1,
      ts: nowTs - 10_000 + from + n,
    }));
    await device.publish('up/measurements', message);
    acknowledged += 1;
  };
  // A burst, and then so much that it must wait for some seconds.
  await Promise.all(Array.from({ length: 100 }, (_, n) => publish(10 * n, 10)));
  await publish(1_000, 700);
  const waiting = [publish(1_700, 10), publish(1_710, 10)];
  await other.publish('up/measurements', { sId: '0x01', val: 1 });
  expect(acknowledged).toBe(101);
  await Promise.all(waiting);
  type Usage = { usage: { quota: string; limit: number; used: number | null }[] };
  const used = async () => {
    const { usage } = await busy.call<Usage>('GET', '/v2/accounts/usage');
    return Object.fromEntries(usage.map(({ quota, used }) => [quota, used]));
  };
  await expect
    .poll(async () => (await used())['eventsPerDay'], { timeout: 60_000, interval: 200 })
    .toBe(1_720);
  expect(await used()).toMatchObject({ eventsPerSecond: null, connections: 1, streams: 0 });
  expect(await countValues(busy, registration.deviceAuthUuid)).toBe(1_000);
  const { rejections } = await busy.call<{ rejections: unknown[] }>(
    'GET',
    `/v2/devices/${registration.deviceAuthUuid}/rejections`,
  );
  expect(rejections).toEqual([]);
});
