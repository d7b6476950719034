import { afterAll, beforeAll, expect, it } from 'vitest';
import { startProxy, type Proxy } from '../faults/proxy.ts';
import { logNames } from '../../src/log/events.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { configuration, send, thresholdPurpose, type Registration } from './app.ts';
import { connectDevice } from './device.ts';
import { runProgram, type Running } from './process.ts';

const { components, events: logEvents } = logNames;

const secret = 'a secret for tests that is long enough to be one';
const email = 'ada.lovelace@mail.example.org';
const password = 'correct horse battery staple';
const wrongPassword = 'incorrect donkey socket';

let database: TestDatabase;
let proxy: Proxy;
let service: Running;

beforeAll(async () => {
  database = await testDatabase();
  proxy = await startProxy(Number(new URL(database.url).port));
});
afterAll(async () => {
  if (service.child.exitCode === null) service.child.kill('SIGKILL');
  await service.ended();
  await proxy.close();
  await database.drop();
});

async function start(): Promise<string> {
  const url = new URL(database.url);
  url.port = String(proxy.port);
  service = runProgram(process.execPath, ['src/main.ts'], {
    env: {
      DATABASE_URL: url.href,
      SECRET: secret,
      HTTP_HOST: '127.0.0.1',
      HTTP_PORT: '0',
      MQTT_HOST: '127.0.0.1',
      MQTT_PORT: '0',
      PUBLIC_HOST: '127.0.0.1',
      LOG_LEVEL: 'trace',
    },
  });
  const [, port] = await service.printed(/"http":\{[^}]*"port":(\d+)[^\n]*"Ready\."/);
  return `http://127.0.0.1:${port}`;
}

type Answer = { status: number; body: Record<string, unknown> };

/** Everything that an app and a device do, with failures. Returns the secrets they hold. */
async function live(url: string): Promise<string[]> {
  const held: string[] = [];
  const ask = async (method: string, path: string, body?: unknown, token?: string) => {
    const response = await send(url + path, method, body, token);
    const answer: Answer = { status: response.status, body: (await response.json()) as never };
    const given = { ...answer.body, ...(answer.body['data'] as object | undefined) };
    for (const [name, value] of Object.entries(given))
      if (/token/i.test(name) && typeof value === 'string') held.push(value);
    return answer;
  };
  const login = () => ask('POST', '/v2/accounts/login', { email, password });
  await ask('POST', '/v2/accounts', { email, password });
  expect((await ask('POST', '/v2/accounts', { email, password })).status).toBe(409);
  await ask('POST', '/v2/accounts/login', { email, password: wrongPassword });
  const broken = `{"email":"${email}","password":"${password}"`;
  await fetch(`${url}/v2/accounts/login`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: broken,
  });
  const { body } = await login();
  const token = String(body['accountAuthToken']);
  const first = await ask('POST', '/v1/auth/login', { email, password });
  const pair = first.body['data'] as { token: string; refreshToken: string };
  const { refreshToken } = pair;
  expect((await ask('POST', '/v1/auth/refresh', { refreshToken }, pair.token)).status).toBe(200);
  await ask('GET', '/v2/devices', undefined, `${token}x`);
  const device = (await ask('POST', '/v2/devices', configuration, token)).body as Registration;
  const uuids = [device.deviceAuthUuid];
  const profile = { deviceAuthUuids: uuids, purposes: [thresholdPurpose(7, 30)] };
  await ask('POST', '/v2/devices/profile', profile, token);
  const refused = connectDevice({ ...device, deviceAuthToken: `${device.deviceAuthToken}x` });
  await expect(refused).rejects.toThrow(/Connection refused|Not authorized/);
  const client = await connectDevice(device);
  await client.subscribe('down/#');
  await client.publish('up/measurements', { sId: '0x01', val: 40 });
  await client.publish('up/measurements', { sId: '0x01', val: email });
  await client.end();
  // Failures of the database are reported as such, with the error.
  proxy.cut();
  expect((await login()).status).toBe(503);
  expect((await ask('GET', '/v2/devices', undefined, token)).status).toBe(503);
  proxy.heal();
  await expect.poll(async () => (await login()).status, { timeout: 60_000 }).toBe(200);
  return held;
}

it('every line has a component and a documented code, and none contains a secret', async () => {
  const url = await start();
  const held = await live(url);
  expect(held.length).toBeGreaterThanOrEqual(8);
  service.child.kill('SIGTERM');
  expect(await service.ended()).toBe(0);
  expect(service.stderr()).toBe('');

  const text = service.stdout();
  const hidden = [...held, email, password, wrongPassword, secret];
  expect(hidden.filter((one) => text.includes(one))).toEqual([]);

  const lines = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const events = new Set(lines.map(({ event }) => event));
  for (const event of ['request.done', 'request.unavailable', 'mqtt.login-refused'])
    expect(events).toContain(event);
  for (const line of lines) {
    expect(logEvents).toContain(line['event']);
    expect(components).toContain(line['component']);
    expect(line['role']).toBe('all');
    if (line['component'] === 'mqtt') expect(line['connectorId']).toBe(1);
    expect(line['msg']).toMatch(/^[A-Z][^]*\.$/);
  }
});
