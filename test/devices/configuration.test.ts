import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type App, configuration, purpose, startApp } from './app.ts';

let app: App;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

describe('4.3 Get Configuration', () => {
  test('answers the configuration with empty profiles and the state of the registration', async () => {
    const token = await app.account();
    const before = Date.now();
    const device = await app.device(token);
    const answer = await app.call('GET', `/v2/devices/${device.uuid}/configuration`, { token });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      ...configuration,
      currentProfile: {},
      pendingProfile: {},
      state: { puId: 0, stId: 0, ts: expect.any(Number) },
      timestamp: expect.any(Number),
    });
    const { ts } = answer.body['state'] as { ts: number };
    expect(Math.abs(ts - before)).toBeLessThan(60_000);
  });

  test('answers current and pending profile with pId, purposes and ts', async () => {
    const token = await app.account();
    const device = await app.device(token);
    const current = await app.install(token, [device.uuid], [purpose(1)]);
    await app.db.query(`update device_profile set state = 'current' where device_id = $1`, [
      device.deviceId,
    ]);
    const pending = await app.install(token, [device.uuid], [purpose(2), purpose(3)]);
    const answer = await app.call('GET', `/v2/devices/${device.uuid}/configuration`, { token });
    expect(answer.body).toMatchObject({
      currentProfile: { pId: current, purposes: [{ puId: 1 }], ts: expect.any(Number) },
      pendingProfile: {
        pId: pending,
        purposes: [{ puId: 2 }, { puId: 3 }],
        ts: expect.any(Number),
      },
    });
  });
});

describe('4.3 Update Configuration', () => {
  test('answers {timestamp}, replaces everything, invalidates what ingest cached and informs the device', async () => {
    const token = await app.account();
    const device = await app.device(token);
    app.told.length = 0;
    const body = { device: { name: 'renamed' }, module: [] };
    const path = `/v2/devices/${device.uuid}/configuration`;
    const answer = await app.call('PUT', path, { token, body });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ timestamp: expect.any(Number) });
    expect((await app.call('GET', path, { token })).body).toMatchObject(body);
    const list = await app.call('GET', '/v2/devices', { token });
    expect(list.body).toMatchObject({ devices: [{ name: 'renamed' }] });
    expect(app.told).toEqual([
      {
        channel: 'device',
        message: { deviceId: device.deviceId, uuid: device.uuid, push: 'configuration' },
      },
    ]);
    expect(await versionOf(device.deviceId)).toBe(2);
  });

  test('answers 400 and changes nothing', async () => {
    const token = await app.account();
    const device = await app.device(token);
    const path = `/v2/devices/${device.uuid}/configuration`;
    const answer = await app.call('PUT', path, { token, body: { device: {}, module: 1 } });
    expect(answer.status).toBe(400);
    expect((await app.call('GET', path, { token })).body).toMatchObject(configuration);
  });
});

async function versionOf(deviceId: number): Promise<number | undefined> {
  const { rows } = await app.db.query<{ version: number }>(
    'select version from device_state where device_id = $1',
    [deviceId],
  );
  return rows[0]?.version;
}
