import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { configuration, openApp, send, type Registration } from './app.ts';
import { connectDevice } from './device.ts';
import { testService, type TestService } from './service.ts';

let service: TestService;
beforeAll(async () => {
  service = await testService({ METRICS_PORT: '0', BROKER_HOOK_SECRET: 'x'.repeat(32) });
});
afterAll(() => service.close());

const readMetrics = async () =>
  (await fetch(`http://127.0.0.1:${service.metricsPort}/metrics`)).text();

test('messages are counted by protocol', async () => {
  const app = await openApp(service.url);
  const overHttp = await app.call<Registration>('POST', '/v2/devices', {
    ...configuration,
    protocol: 'http',
  });
  const { host, port, deviceAuthUuid: uuid, deviceAuthToken: token } = overHttp;
  const url = `http://${host}:${port}/devices/${uuid}/up/measurements`;
  for (const val of [1, 2])
    expect((await send(url, 'POST', { sId: '0x01', val }, token)).status).toBe(200);
  expect((await send(url, 'POST', { sId: '0x01', val: 3 }, 'wrong')).status).toBe(401);
  const device = await connectDevice(
    await app.call<Registration>('POST', '/v2/devices', configuration),
  );
  await device.publish('up/measurements', { sId: '0x01', val: 1 });
  await device.end();
  const text = await readMetrics();
  expect(text).toContain('http_uplink_messages_total{kind="measurements"} 2');
  expect(text).toContain('http_uplink_answer_seconds_count 2');
  expect(text).toContain('http_uplink_refusals_total{reason="not-authorized"} 1');
  expect(text).toContain('mqtt_messages_total{kind="measurements"} 1');
  expect(text).not.toContain('mqtt_refusals_total{');
});

test('each metric of the service is documented, and no others are', async () => {
  const page = await readFile('docs/metrics.md', 'utf8');
  const [, table = ''] = page.split(/<!-- metrics: (?:begin|end) -->/);
  const documented = [...table.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name);
  const served = [...(await readMetrics()).matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name);
  const own = served.filter((name) => !/^(process|nodejs|bridge)_/.test(name ?? ''));
  expect(documented.toSorted()).toEqual(own.toSorted());
});
