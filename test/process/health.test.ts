import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { findFreePort } from '../../src/db/embedded/cluster.ts';
import { startProxy, type Proxy } from '../faults/proxy.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { configuration, openApp, type Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { runProgram, type Running } from '../journeys/process.ts';

/** For starting a program on a busy machine. */
const patience = { timeout: 60_000 };

let database: TestDatabase;
let proxy: Proxy;
let healthPort: number;
const started: Running[] = [];

beforeAll(async () => {
  database = await testDatabase();
  proxy = await startProxy(Number(new URL(database.url).port));
});
afterEach(async () => {
  proxy.heal();
  for (const { child, ended } of started.splice(0)) {
    if (child.exitCode === null) child.kill('SIGKILL');
    await ended();
  }
});
afterAll(async () => {
  await proxy.close();
  await database.drop();
});

/** The service, with the database behind the proxy. */
async function start(args: string[], env: Record<string, string> = {}): Promise<Running> {
  const url = new URL(database.url);
  url.port = String(proxy.port);
  healthPort = await findFreePort();
  const service = runProgram(process.execPath, ['src/main.ts', ...args], {
    env: {
      DATABASE_URL: url.href,
      SECRET: 'a secret for tests that is long enough to be one',
      HTTP_HOST: '127.0.0.1',
      HTTP_PORT: '0',
      MQTT_HOST: '127.0.0.1',
      MQTT_PORT: '0',
      PUBLIC_HOST: '127.0.0.1',
      HEALTH_PORT: String(healthPort),
      ...env,
    },
  });
  started.push(service);
  return service;
}

async function ask(path: string, url = `http://127.0.0.1:${healthPort}`) {
  try {
    const response = await fetch(url + path);
    const body = (await response.json()) as Record<string, unknown>;
    return { status: response.status, detail: body['detail'], headers: response.headers };
  } catch {
    return { status: 0 };
  }
}

const readiness = async () => {
  const { status, detail } = await ask('/readyz');
  return { status, detail };
};
const ready = { status: 200, detail: undefined };
const unready = (why: string) => ({ status: 503, detail: `Not ready: ${why}.` });

describe('HEALTH_PORT', () => {
  it('reports whether a connector is live and ready', async () => {
    proxy.stall();
    const connector = await start(['connector', '--id', '1']);
    await expect.poll(() => ask('/livez'), patience).toMatchObject({ status: 200 });
    expect(await readiness()).toEqual(unready('starting'));
    proxy.heal();
    await connector.printed(/"mqtt":[^\n]*"health":[^\n]*"Ready\."/);
    expect(await readiness()).toEqual(ready);
    proxy.stall();
    await expect.poll(readiness, patience).toEqual(unready('database'));
    expect(await ask('/livez')).toMatchObject({ status: 200 });
    proxy.heal();
    await expect.poll(readiness, patience).toEqual(ready);
    expect((await ask('/v2/status')).status).toBe(404);
    connector.child.kill('SIGTERM');
    expect(await connector.ended()).toBe(0);
  });
});

describe('DRAIN_DELAY_MS', () => {
  it('keeps serving while it reports that it is not ready, then stops in order', async () => {
    const service = await start([], { DRAIN_DELAY_MS: '6000' });
    const [, port] = await service.printed(/"http":\{[^}]*"port":(\d+)[^\n]*"Ready\."/);
    const url = `http://127.0.0.1:${port}`;
    const app = await openApp(url);
    const registration = await app.call<Registration>('POST', '/v2/devices', configuration);
    const before = await connectDevice(registration);
    expect((await ask('/v2/status', url)).headers?.get('connection')).not.toBe('close');

    service.child.kill('SIGTERM');
    await expect.poll(() => ask('/readyz', url), patience).toMatchObject(unready('shutting down'));
    expect(await readiness()).toEqual(unready('shutting down'));
    // New connections are accepted, and each answer ends its connection.
    const status = await ask('/v2/status', url);
    expect([status.status, status.headers?.get('connection')]).toEqual([200, 'close']);
    const after = await connectDevice(registration);
    for (const device of [before, after])
      await device.publish('up/measurements', { sId: '0x01', val: 20 });
    const { measurements } = await app.call<{ measurements: unknown[] }>(
      'GET',
      `/v2/measurements/${registration.deviceAuthUuid}`,
    );
    expect(measurements).toHaveLength(2);
    for (const at of [url, undefined]) expect((await ask('/livez', at)).status).toBe(200);
    expect(await service.ended()).toBe(0);
    expect(before.client.connected || after.client.connected).toBe(false);
  });

  it('is cut short by a second request to stop', async () => {
    const service = await start(['api'], { DRAIN_DELAY_MS: '600000' });
    await service.printed(/"Ready\."/);
    service.child.kill('SIGTERM');
    await expect.poll(readiness, patience).toEqual(unready('shutting down'));
    // Within a second it still counts as the first one.
    const again = () => service.child.kill('SIGTERM') && service.child.exitCode;
    await expect.poll(again, { timeout: 60_000, interval: 100 }).not.toBeNull();
    expect(await service.ended()).toBe(1);
  });
});
