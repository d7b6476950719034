import { afterEach, describe, expect, test } from 'vitest';
import { findFreePort } from '../../src/db/embedded/cluster.ts';
import { openDatabase } from '../../src/db/database.ts';
import { processName } from '../../src/db/lease.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { databaseKinds, type DatabaseKind } from '../support/database.ts';
import { configuration, openApp, send, type App, type Registration } from './app.ts';
import { connectDevice, type TestDevice } from './device.ts';
import { testService, type TestService } from './service.ts';

// The service's clock stands still, so that rates allow nothing beyond their bursts.
const each = 50;
/** More than twice what one read may bring. */
const backlog = 250;
const patient = { timeout: 60_000, interval: 10 };

type Running = { service: TestService; metricsPort: number; pass: (ms: number) => void };
const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

async function start(kind?: DatabaseKind, catchUp?: boolean): Promise<Running> {
  let monotonicMs = 1_000_000;
  const metricsPort = await findFreePort();
  const service = await testService(
    { METRICS_PORT: String(metricsPort) },
    {
      ...(kind && { kind }),
      clocks: { clock: systemClock, monotonicClock: () => monotonicMs },
      change: (config) =>
        catchUp === undefined ? config : { ...config, mqtt: { ...config.mqtt, catchUp } },
    },
  );
  ends.push(service.close);
  return { service, metricsPort, pass: (ms) => (monotonicMs += ms) };
}

const register = (app: App, protocol = 'mqtt') =>
  app.call<Registration>('POST', '/v2/devices', { ...configuration, protocol });

async function connect(registration: Registration): Promise<TestDevice> {
  const device = await connectDevice(registration);
  ends.push(() => device.client.endAsync(true));
  return device;
}

/** Values of last week, `each` in a message. */
const messageOf = (n: number) =>
  Array.from({ length: each }, (_, at) => ({
    sId: '0x02',
    val: at,
    ts: Date.now() - 600_000_000 + (n * each + at) * 1_000,
  }));

function sendBacklog(device: TestDevice) {
  const sent = { acknowledged: 0 };
  for (let n = 0; n < backlog; n += 1)
    device.publish('up/measurements', messageOf(n)).then(
      () => (sent.acknowledged += 1),
      () => undefined,
    );
  return sent;
}

async function metric({ metricsPort }: Running, name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? NaN);
}
const waits = (running: Running) => metric(running, 'device_rate_waits_total');

describe.each(databaseKinds)('a device that was away, on %s', (kind) => {
  test('sends everything it kept while nobody else is active, over MQTT and over HTTP', async () => {
    const running = await start(kind);
    const app = await openApp(running.service.url);
    const registration = await register(app);
    const device = await connect(registration);
    const sent = sendBacklog(device);
    await expect.poll(() => sent.acknowledged, patient).toBe(backlog);
    expect(await metric(running, 'ingest_measurements_total')).toBe(backlog * each);
    const beyond = await metric(running, 'device_beyond_rates_total');
    expect(beyond).toBeGreaterThan(backlog * each - 1_000 - 100 * each);

    const overHttp = await register(app, 'http');
    const { host, port, deviceAuthUuid: uuid, deviceAuthToken: token } = overHttp;
    const url = `http://${host}:${port}/devices/${uuid}/up/measurements`;
    for (let n = 0; n < 60; n += 1)
      expect((await send(url, 'POST', messageOf(n), token)).status).toBe(200);
    expect(await metric(running, 'ingest_measurements_total')).toBe((backlog + 60) * each);
  });
});

test('is held to its rates while another account sends, and continues when that is over', async () => {
  const running = await start();
  const { service, pass } = running;
  const [mine, theirs] = [await openApp(service.url), await openApp(service.url)];
  const device = await connect(await register(mine));
  const other = await connect(await register(theirs));
  await other.publish('up/measurements', { sId: '0x02', val: 1 });
  const sent = sendBacklog(device);
  await expect.poll(() => sent.acknowledged, patient).toBeGreaterThan(0);
  await expect.poll(() => waits(running), patient).toBeGreaterThan(0);
  // The service checks ten times a second whether it may continue.
  for (let n = 2; n < 30; n += 1) await other.publish('up/measurements', { sId: '0x02', val: n });
  expect(sent.acknowledged).toBeLessThan(backlog);
  expect(await metric(running, 'device_beyond_rates_total')).toBe(0);
  pass(300);
  await expect.poll(() => sent.acknowledged, patient).toBe(backlog);
});

test('a request of another account counts as activity, one of its own does not', async () => {
  const running = await start();
  const { service, pass } = running;
  const [mine, theirs] = [await openApp(service.url), await openApp(service.url)];
  const device = await connect(await register(mine));
  pass(300);
  await mine.call('GET', '/v2/devices');
  const first = sendBacklog(device);
  await expect.poll(() => first.acknowledged, patient).toBe(backlog);
  const before = await waits(running);
  await theirs.call('GET', '/v2/devices');
  const second = sendBacklog(device);
  await expect.poll(() => waits(running), patient).toBeGreaterThan(before);
  expect(second.acknowledged).toBeLessThan(backlog);
  pass(300);
  await expect.poll(() => second.acknowledged, patient).toBe(backlog);
});

test('a process that keeps the database busy counts as activity', async () => {
  const running = await start();
  const { service, pass } = running;
  const device = await connect(await register(await openApp(service.url)));
  const other = openDatabase({
    connectionString: service.databaseUrl,
    schema: 'public',
    applicationName: processName('other'),
    maxConnections: 1,
    connectTimeoutMs: 5_000,
    statementTimeoutMs: 60_000,
    onIdleError: () => undefined,
  });
  ends.push(() => other.close());
  const sent = await other.transaction(async (tx) => {
    await tx.query('select 1');
    const begun = sendBacklog(device);
    await expect.poll(() => waits(running), patient).toBeGreaterThan(0);
    return begun;
  });
  expect(sent.acknowledged).toBeLessThan(backlog);
  pass(300);
  await expect.poll(() => sent.acknowledged, patient).toBe(backlog);
});

test('with mqtt.catchUp off it is always held to its rates, which MQTT and HTTP share', async () => {
  const running = await start(undefined, false);
  const { service, pass } = running;
  const app = await openApp(service.url);
  const registration = await register(app);
  const device = await connect(registration);
  const sent = sendBacklog(device);
  await expect.poll(() => waits(running), patient).toBeGreaterThan(0);
  const before = await waits(running);
  const { deviceAuthUuid: uuid, deviceAuthToken: token } = registration;
  const url = `${service.url}/devices/${uuid}/up/measurements`;
  const overHttp = send(url, 'POST', { sId: '0x02', val: 7, ts: Date.now() }, token);
  let isAnswered = false;
  void overHttp.then(() => (isAnswered = true));
  await expect.poll(() => waits(running), patient).toBeGreaterThan(before);
  expect(isAnswered).toBe(false);
  expect(sent.acknowledged).toBeLessThan(backlog);
  expect(await metric(running, 'device_beyond_rates_total')).toBe(0);
  const go = () => {
    pass(1_000);
    return sent.acknowledged === backlog && isAnswered;
  };
  await expect.poll(go, patient).toBe(true);
});
