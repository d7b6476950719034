import { connect } from 'mqtt';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { configuration, openApp } from './app.ts';
import type { App, Registration } from './app.ts';
import { testService } from './service.ts';
import type { TestService } from './service.ts';

let service: TestService;
let app: App;

beforeAll(async () => {
  service = await testService(
    {},
    { change: (config) => ({ ...config, mqtt: { ...config.mqtt, reconnectsBurst: 3 } }) },
  );
  app = await openApp(service.url);
});
afterAll(() => service.close());

/** The return code of a CONNACK. Closes the connection at once. */
const connectOnce = ({ deviceAuthUuid, deviceAuthToken }: Registration) =>
  new Promise<number>((resolve) => {
    const client = connect({
      port: service.mqttPort,
      host: '127.0.0.1',
      protocolVersion: 4,
      username: deviceAuthUuid,
      password: deviceAuthToken,
      reconnectPeriod: 0,
    });
    client.on('error', (error) => resolve('code' in error ? error.code : -1));
    client.on('connect', () => client.end(true, {}, () => resolve(0)));
  });

it('a device that connects again and again is told so, once, in its rejections', async () => {
  const device = await app.call<Registration>('POST', '/v2/devices', configuration);
  const other = await app.call<Registration>('POST', '/v2/devices', configuration);
  const codes = new Set<number>();
  while (!codes.has(3)) codes.add(await connectOnce(device));
  expect([...codes]).toEqual([0, 3]);
  for (let n = 0; n < 5; n += 1) await connectOnce(device);
  expect(await connectOnce(other)).toBe(0);
  const path = `/v2/devices/${device.deviceAuthUuid}/rejections`;
  const listed = () => app.call<{ rejections: { reason: string; topic: string }[] }>('GET', path);
  await expect
    .poll(async () => (await listed()).rejections)
    .toMatchObject([{ reason: 'too-many-connects', topic: 'CONNECT', payload: '' }]);
});
