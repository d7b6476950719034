import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { configuration, openApp, type Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { testService, type TestService } from '../journeys/service.ts';
import { canOpenRedis, openRedis, type OpenRedis } from '../support/redis.ts';

describe.skipIf(!canOpenRedis)('two processes', () => {
  let redis: OpenRedis;
  let first: TestService;
  let second: TestService;

  beforeAll(async () => {
    redis = await openRedis();
    first = await testService({ REDIS_URL: redis.url });
    second = await testService({ REDIS_URL: redis.url, DATABASE_URL: first.databaseUrl });
  });
  afterAll(async () => {
    await second?.close();
    await first?.close();
    await redis?.close();
  });

  test('a command given to one is sent by the other, once, and its answer ends the wait', async () => {
    const app = await openApp(first.url);
    const registration = await app.call<Registration>('POST', '/v2/devices', configuration);
    const path = `/v2/devices/${registration.deviceAuthUuid}/commands`;
    const device = await connectDevice({ ...registration, port: second.mqttPort });
    const other = await connectDevice({ ...registration, port: first.mqttPort });
    await device.subscribe('down/command');
    const names = ['one', 'two'];
    for (const name of names) {
      const given = app.call('POST', `${path}?wait=25`, { name });
      const { commandId } = await device.receive('down/command');
      await device.publish('up/command', { commandId, state: 'done', text: name });
      expect(await given).toMatchObject({ commandId, name, state: 'done', text: name });
    }
    expect(device.received).toEqual([]);
    // A command that is cancelled at one process makes room at the other.
    const cancelled = await app.call('POST', path, { name: 'cancelled' });
    await device.receive('down/command');
    const next = await app.call('POST', path, { name: 'next' });
    await app.call('DELETE', `${path}/${String(cancelled['commandId'])}`);
    const down = await device.receive('down/command');
    expect(down).toMatchObject({ commandId: next['commandId'] });
    await device.end();
    await other.end();
  });
});
