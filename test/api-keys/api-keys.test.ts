import { afterAll, beforeAll, expect, test } from 'vitest';
import { configuration, openApp, send, type App, type Registration } from '../journeys/app.ts';
import { readEvents } from '../events/sse.ts';
import { connectDevice } from '../journeys/device.ts';
import { testService, type TestService } from '../journeys/service.ts';
import { makeKey } from './open-key.ts';

let service: TestService;
let second: TestService;
beforeAll(async () => {
  service = await testService();
  second = await testService({ DATABASE_URL: service.databaseUrl });
});
afterAll(async () => {
  await second?.close();
  await service?.close();
});

type Key = { keyId: string; name: string; lastUsedTs: number | null; labels: string[] };
type Devices = { devices: { uuid: string; token: string }[] };

async function ask(key: string, path: string, url = service.url) {
  const response = await send(url + path, 'GET', undefined, key);
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

async function addDevice(app: App, labels: string[]): Promise<string> {
  const { deviceAuthUuid } = await app.call<Registration>('POST', '/v2/devices', configuration);
  await app.call('PUT', `/v2/devices/${deviceAuthUuid}/labels`, { labels });
  return deviceAuthUuid;
}

test('a key is shown once, listed without its text, and counted', async () => {
  const app = await openApp(service.url);
  const { keyId, key } = await makeKey(app, { scopes: ['data:read'] });
  expect(key).toMatch(/^sens_[\w-]{43}$/);
  const list = async () => (await app.call<{ keys: Key[] }>('GET', '/v2/accounts/keys')).keys;
  expect(await list()).toMatchObject([{ keyId, name: 'a program', lastUsedTs: null, labels: [] }]);
  expect(JSON.stringify(await list())).not.toContain(key);
  expect((await ask(key, '/v2/measurements/latest')).status).toBe(200);
  await expect
    .poll(async () => (await list())[0]?.lastUsedTs, { timeout: 60_000 })
    .toEqual(expect.any(Number));
  type Usage = { usage: { quota: string; used: number }[] };
  const { usage } = await app.call<Usage>('GET', '/v2/accounts/usage');
  expect(usage.find(({ quota }) => quota === 'keys')?.used).toBe(1);
});

test('a revoked key is refused from then on, in any process, and its streams end', async () => {
  const app = await openApp(service.url);
  const { keyId, key } = await makeKey(app, { scopes: ['data:read', 'devices:read'] });
  expect((await ask(key, '/v2/devices', second.url)).status).toBe(200);
  const stream = await send(`${service.url}/v2/events/stream`, 'GET', undefined, key);
  expect(stream.status).toBe(200);
  const ended = stream.text();
  await app.call('DELETE', `/v2/accounts/keys/${keyId}`);
  for (const { url } of [service, second])
    expect((await ask(key, '/v2/devices', url)).status).toBe(401);
  await ended;
  const again = await send(`${service.url}/v2/events/stream`, 'GET', undefined, key);
  expect(again.status).toBe(401);
});

test('lists for a key contain no device token; registering a device returns one', async () => {
  const app = await openApp(service.url);
  const { key } = await makeKey(app, { scopes: ['devices:read', 'devices:write'] });
  const made = await send(`${service.url}/v2/devices`, 'POST', configuration, key);
  expect(((await made.json()) as Registration).deviceAuthToken).not.toBe('');
  const { devices } = (await ask(key, '/v2/devices')).body as Devices;
  expect(devices.map(({ token }) => token)).toEqual(['']);
  const own = await app.call<Devices>('GET', '/v2/devices');
  expect(own.devices[0]?.token).not.toBe('');
});

test('a key with labels sees only devices that have one of them', async () => {
  const app = await openApp(service.url);
  const [cellar, attic] = [
    await addDevice(app, ['cellar', 'wine']),
    await addDevice(app, ['attic']),
  ];
  const { key } = await makeKey(app, {
    scopes: ['devices:read', 'devices:write', 'data:read'],
    labels: ['cellar'],
  });
  const { devices } = (await ask(key, '/v2/devices')).body as Devices;
  expect(devices.map(({ uuid }) => uuid)).toEqual([cellar]);
  expect((await ask(key, `/v2/measurements/${cellar}`)).status).toBe(200);
  expect((await ask(key, `/v2/measurements/${attic}`)).status).toBe(404);
  expect((await ask(key, `/v2/measurements/latest?devices=${attic}`)).status).toBe(404);
  expect((await ask(key, `/v2/events?devices=${attic}`)).status).toBe(404);
  expect(
    (await ask(key, `/v2/events?devices=${attic},${cellar}&label=attic`)).body['events'],
  ).toEqual([]);
  expect((await ask(key, '/v2/devices?counts=true')).body['counts']).toMatchObject({ all: 1 });
  const install = (uuid: string) =>
    send(
      `${service.url}/v2/devices/profile`,
      'POST',
      { deviceAuthUuids: [uuid], purposes: [{ puId: 1, initStId: 1, states: [{ stId: 1 }] }] },
      key,
    );
  const installed = await install(cellar);
  expect(installed.status).toBe(200);
  expect((await install(attic)).status).toBe(404);
  const { pId } = (await installed.json()) as { pId: string };
  expect((await ask(key, `/v2/devices/profile/${pId}`)).body['devices']).toHaveLength(1);
  await app.call('PUT', `/v2/devices/${cellar}/labels`, { labels: [] });
  expect((await ask(key, `/v2/devices/profile/${pId}`)).body['devices']).toEqual([]);
  expect((await ask(key, `/v2/measurements/${cellar}`)).status).toBe(404);
  expect((await send(`${service.url}/v2/devices`, 'POST', configuration, key)).status).toBe(403);
});

test('a key with labels streams the events of its devices', async () => {
  const app = await openApp(service.url);
  const [cellar, attic] = [await addDevice(app, ['cellar']), await addDevice(app, ['attic'])];
  const { key } = await makeKey(app, { scopes: ['data:read'], labels: ['cellar'] });
  const all = await readEvents(`${service.url}/v2/events/stream`, key);
  const one = await readEvents(`${service.url}/v2/events/${cellar}/stream`, key);
  const report = async (uuid: string, puId: number) => {
    const { token } = (await app.call<Devices>('GET', '/v2/devices')).devices.find(
      (device) => device.uuid === uuid,
    ) ?? { token: '' };
    const device = await connectDevice({
      protocol: 'mqtt',
      host: '127.0.0.1',
      port: service.mqttPort,
      deviceAuthUuid: uuid,
      deviceAuthToken: token,
    } as Registration);
    await device.publish('up/state', { puId, stId: 1 });
    await device.end();
  };
  await report(attic, 1);
  await report(cellar, 2);
  for (const stream of [all, one])
    expect(await stream.until(1)).toMatchObject([{ deviceAuthUuid: cellar, newValue: 2 }]);
  // Without the label, this device's events are no longer sent, and the other device's are.
  await app.call('PUT', `/v2/devices/${cellar}/labels`, { labels: [] });
  await app.call('PUT', `/v2/devices/${attic}/labels`, { labels: ['cellar'] });
  await report(cellar, 3);
  await report(attic, 4);
  expect(await all.until(2)).toMatchObject([{}, { deviceAuthUuid: attic, newValue: 4 }]);
  expect(one.messages.filter(({ data }) => data)).toHaveLength(1);
  all.close();
  one.close();
});

test('the audit trail contains the key and what it does', async () => {
  const app = await openApp(service.url);
  const { keyId, key } = await makeKey(app, { scopes: ['devices:write'], name: 'installer' });
  await send(`${service.url}/v2/devices`, 'POST', configuration, key);
  await app.call('DELETE', `/v2/accounts/keys/${keyId}`);
  type Entry = { kind: string; by: string; keyId?: string; details: Record<string, unknown> };
  const { entries } = await app.call<{ entries: Entry[] }>(
    'GET',
    '/v2/accounts/audit?kinds=key-made,key-revoked,device-added',
  );
  expect(entries.map(({ kind, by, keyId: of }) => [kind, by, of])).toEqual([
    ['key-revoked', 'session', undefined],
    ['device-added', 'key', keyId],
    ['key-made', 'session', undefined],
  ]);
  expect(JSON.stringify(entries)).not.toContain(key);
});

test.each([
  ['without a scope', { scopes: [] }, '/scopes'],
  ['with an unknown scope', { scopes: ['everything'] }, '/scopes/0'],
  ['that has already expired', { scopes: ['data:read'], expiresTs: 1 }, '/expiresTs'],
  ['without a name', { scopes: ['data:read'], name: '' }, '/name'],
])('a key %s is refused', async (_what, given, path) => {
  const app = await openApp(service.url);
  await expect(makeKey(app, given)).rejects.toThrow(new RegExp(`400 .*${path}`, 's'));
});
