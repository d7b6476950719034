import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { configuration, openApp } from '../journeys/app.ts';
import type { App, Registration } from '../journeys/app.ts';
import { testService } from '../journeys/service.ts';
import type { TestService } from '../journeys/service.ts';

const secret = 'the secret of the broker';
const bearer = `Bearer ${secret.replaceAll(' ', '-')}`;
let service: TestService;
let app: App;
let device: Registration;
let other: Registration;

beforeAll(async () => {
  service = await testService({ BROKER_HOOK_SECRET: bearer.slice(7) });
  app = await openApp(service.url);
  device = await app.call<Registration>('POST', '/v2/devices', configuration);
  other = await app.call<Registration>('POST', '/v2/devices', configuration);
});
afterAll(() => service.close());

async function ask(path: string, body: unknown, authorization: string | null = bearer) {
  const headers: Record<string, string> = { 'Content-Type': 'application/json' };
  if (authorization !== null) headers['Authorization'] = authorization;
  const response = await fetch(`${service.url}/connector/${path}`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

const authenticate = async (username: unknown, password: unknown) =>
  (await ask('authenticate', { username, password, clientid: 'any' })).body;

describe('an external broker asks who may connect', () => {
  it('in the form of EMQX and in that of mosquitto-go-auth', async () => {
    const { deviceAuthUuid: uuid, deviceAuthToken: token } = device;
    expect(await authenticate(uuid, token)).toEqual({
      result: 'allow',
      is_superuser: false,
      ok: true,
      error: '',
      acl: [
        { permission: 'allow', action: 'publish', topic: `devices/${uuid}/up/#` },
        { permission: 'allow', action: 'subscribe', topic: `devices/${uuid}/down/#` },
        { permission: 'deny', action: 'all', topic: '#' },
      ],
    });
    expect(await authenticate(uuid, other.deviceAuthToken)).toEqual({
      result: 'deny',
      is_superuser: false,
      ok: false,
      error: 'not authorized',
    });
    const wrong = { username: uuid, password: 'wrong', peerhost: '203.0.113.7' };
    expect((await ask('authenticate', wrong)).body).toMatchObject({ ok: false });
    const refused = () => app.call('GET', `/v2/devices/${uuid}/refused-logins`);
    await expect.poll(refused, { timeout: 60_000 }).toMatchObject({
      refusedLogins: [{ reason: 'wrong-token', address: '203.0.113.7' }, {}],
    });
    expect(await authenticate('nobody', 'x')).toMatchObject({ ok: false });
    expect((await ask('authenticate', {})).body).toMatchObject({ result: 'deny' });
  });

  it('and a bridge is accepted with the secret', async () => {
    const name = 'sensorium-bridge-7';
    expect(await authenticate(name, bearer.slice(7))).toMatchObject({ ok: true });
    expect(await authenticate(name, `${bearer.slice(7)}x`)).toMatchObject({ ok: false });
    expect(await authenticate(name, '')).toMatchObject({ ok: false });
    expect(await authenticate(`${name}x`, bearer.slice(7))).toMatchObject({ ok: false });
  });

  it('or with a secret of its own, if there is one, and with no other', async () => {
    const own = 'a secret that bridges have alone';
    const variables = { BROKER_HOOK_SECRET: bearer.slice(7), BRIDGE_SECRET: own };
    const separate = await testService({ ...variables, METRICS_PORT: '0' });
    const is = async (password: string) => {
      const response = await fetch(`${separate.url}/connector/authenticate`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Authorization: bearer },
        body: JSON.stringify({ username: 'sensorium-bridge', password, peerhost: '203.0.113.9' }),
      });
      return ((await response.json()) as { ok: boolean }).ok;
    };
    expect(await is(own)).toBe(true);
    expect(await is(bearer.slice(7))).toBe(false);
    await separate.close();
  });

  it('and is answered only with its secret', async () => {
    const { deviceAuthUuid: username, deviceAuthToken: password } = device;
    const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
    const asked = async (authorization: string | null) =>
      (await ask('authenticate', { username, password }, authorization)).status;
    expect(await asked(null)).toBe(401);
    expect(await asked('Bearer wrong')).toBe(401);
    expect(await asked(basic('broker:wrong'))).toBe(401);
    expect(await asked(basic(`broker:${bearer.slice(7)}`))).toBe(200);
    expect((await ask('authorize', { username, topic: 'x', acc: 2 }, null)).status).toBe(401);
  });

  it('and finds nothing if no secret is set', async () => {
    const closed = await testService();
    const response = await fetch(`${closed.url}/connector/authenticate`, { method: 'POST' });
    expect(response.status).toBe(404);
    await closed.close();
  });
});

describe('a broker that decides by the status alone', () => {
  const statusOf = async (path: string, body: object) => (await ask(path, body)).status;
  const who = () => ({ username: device.deviceAuthUuid, password: device.deviceAuthToken });

  it('gets 403 for those who may not connect, and 200 for those who may', async () => {
    const path = 'authenticate?deny=403';
    expect(await statusOf(path, who())).toBe(200);
    expect(await statusOf(path, { ...who(), password: other.deviceAuthToken })).toBe(403);
    expect(await statusOf(path, { username: 'nobody', password: 'x' })).toBe(403);
    expect(await statusOf(path, {})).toBe(403);
    const bridge = { username: 'sensorium-bridge', password: bearer.slice(7) };
    expect(await statusOf(path, bridge)).toBe(200);
    expect(await statusOf(path, { ...bridge, password: 'x' })).toBe(403);
  });

  it('gets 403 for what is not allowed, and 200 for what is', async () => {
    const path = 'authorize?deny=403';
    const { username } = who();
    const wish = { username, action: 'publish' };
    expect(await statusOf(path, { ...wish, topic: `devices/${username}/up/state` })).toBe(200);
    expect(await statusOf(path, { ...wish, topic: `devices/${username}/down/state` })).toBe(403);
    expect(await statusOf(path, { username, topic: `devices/${username}/up/state` })).toBe(403);
    const bridge = { username: 'sensorium-bridge', acc: 4 };
    expect(await statusOf(path, { ...bridge, topic: '#' })).toBe(403);
    expect(await statusOf(path, { ...bridge, topic: 'devices/+/up/#' })).toBe(200);
  });

  it('does not get 200 for a request that does not exist', async () => {
    expect(await statusOf('authenticate?deny=401', who())).toBe(400);
    expect(await statusOf('authenticate?deny=403&deny=403', who())).toBe(400);
  });
});

describe('the examples in config/', () => {
  const read = (name: string) =>
    readFileSync(new URL(`../../config/${name}`, import.meta.url), 'utf8');

  it('make brokers that read the answer use its body, not its status', () => {
    const urls = [...read('emqx/emqx.conf').matchAll(/^ *url = "(.*)"/gm)].map(([, url]) => url);
    expect(urls.map((url) => url?.replace(/.*:8080/, ''))).toEqual([
      '/connector/authenticate',
      '/connector/authorize',
    ]);
    const mosquitto = read('mosquitto/mosquitto.conf');
    expect(mosquitto).toMatch(/^auth_opt_http_response_mode json$/m);
    expect(mosquitto).toMatch(/^auth_opt_http_getuser_uri \/connector\/authenticate$/m);
    expect(mosquitto).toMatch(/^auth_opt_http_aclcheck_uri \/connector\/authorize$/m);
    expect(read('hivemq/README.md')).toContain('`/connector/authenticate`');
  });
});

describe('an external broker asks what is allowed', () => {
  const own = () => `devices/${device.deviceAuthUuid}`;
  const foreign = () => `devices/${other.deviceAuthUuid}`;
  const wishes: [string, object, () => string, boolean][] = [
    ['publish below its up/', { action: 'publish' }, () => `${own()}/up/measurements`, true],
    ['publish below its down/', { action: 'publish' }, () => `${own()}/down/profile`, false],
    ['publish for another', { action: 'publish' }, () => `${foreign()}/up/state`, false],
    ['publish elsewhere', { acc: 2 }, () => 'anything', false],
    ['publish with acc 2', { acc: 2 }, () => `${own()}/up/state`, true],
    ['subscribe to its down/#', { action: 'subscribe' }, () => `${own()}/down/#`, true],
    ['subscribe with acc 4', { acc: 4 }, () => `${own()}/down/profile`, true],
    ['subscribe to another’s', { action: 'subscribe' }, () => `${foreign()}/down/#`, false],
    ['subscribe to everything', { action: 'subscribe' }, () => '#', false],
    ['subscribe to all devices', { acc: 4 }, () => 'devices/+/down/#', false],
    ['share what bridges share', { acc: 4 }, () => '$share/sensorium/devices/+/up/#', false],
    ['be sent its own', { acc: 1 }, () => `${own()}/down/display`, true],
    ['be sent another’s', { acc: 1 }, () => `${foreign()}/down/display`, false],
    ['do both at once', { acc: 3 }, () => `${own()}/down/display`, false],
    ['do nothing named', {}, () => `${own()}/up/state`, false],
  ];
  it.each(wishes)('a device may %s', async (_what, words, topic, expected) => {
    const { body } = await ask('authorize', {
      username: device.deviceAuthUuid,
      topic: topic(),
      ...words,
    });
    expect(body).toMatchObject({ ok: expected, result: expected ? 'allow' : 'deny' });
  });

  it.each([
    [{ action: 'subscribe' }, 'devices/+/up/#', true],
    [{ acc: 4 }, '$share/sensorium/devices/+/up/#', true],
    [{ acc: 4 }, '$share/sensorium/devices/+/down/#', false],
    [{ acc: 1 }, 'devices/x/up/measurements', true],
    [{ action: 'publish' }, 'devices/x/down/profile', true],
    [{ action: 'publish' }, 'devices/x/up/measurements', false],
    [{ action: 'subscribe' }, '#', false],
  ])('a bridge may %j %s: %s', async (words, topic, expected) => {
    const { body } = await ask('authorize', { username: 'sensorium-bridge', topic, ...words });
    expect(body).toMatchObject({ ok: expected });
  });

  it('and a removed device may do nothing any more', async () => {
    const gone = await app.call<Registration>('POST', '/v2/devices', configuration);
    const wish = {
      username: gone.deviceAuthUuid,
      topic: `devices/${gone.deviceAuthUuid}/up/state`,
      action: 'publish',
    };
    expect((await ask('authorize', wish)).body).toMatchObject({ ok: true });
    await app.call('DELETE', `/v2/devices/${gone.deviceAuthUuid}`);
    expect((await ask('authorize', wish)).body).toMatchObject({ ok: false });
    expect(await authenticate(gone.deviceAuthUuid, gone.deviceAuthToken)).toMatchObject({
      ok: false,
    });
  });
});
