import { afterAll, beforeAll, expect, test } from 'vitest';
import { scopes } from '../../src/http/request.ts';
import { makeKey } from '../api-keys/open-key.ts';
import { send } from '../journeys/app.ts';
import { testService, type TestService } from '../journeys/service.ts';
import { openAccount } from './readers.ts';

let service: TestService;
beforeAll(async () => {
  service = await testService();
});
afterAll(() => service?.close());

const statusOf = async (path: string, token?: string, method = 'GET', body?: object) => {
  const response = await send(service.url + path, method, body, token);
  await response.body?.cancel();
  return response.status;
};

const kinds = ['measurements'];

test('a ticket opens its stream and nothing else, and no bearer opens it', async () => {
  const { app, token } = await openAccount(service.url);
  const { url } = await app.call<{ url: string }>('POST', '/v2/streams', { kinds });
  const ticket = new URL(url, service.url).searchParams.get('ticket') ?? '';
  const others = ['/v2/measurements/stream', '/v2/events/stream', '/v2/devices', '/v2/accounts'];
  for (const path of others) {
    expect(await statusOf(path, ticket)).toBe(401);
    expect(await statusOf(`${path}?ticket=${ticket}`)).toBe(401);
  }
  expect(await statusOf('/v2/streams', token)).toBe(401);
  expect(await statusOf(url, 'made.up.token')).toBe(200);
});

test('a key without data:read creates and opens none', async () => {
  const { app } = await openAccount(service.url);
  const { key } = await makeKey(app, { scopes: scopes.filter((scope) => scope !== 'data:read') });
  expect(await statusOf('/v2/streams', key, 'POST', { kinds })).toBe(403);
  expect(await statusOf('/v2/measurements/stream', key)).toBe(403);
});

test("another account's devices are unknown", async () => {
  const { app } = await openAccount(service.url);
  const stranger = await openAccount(service.url);
  const { deviceAuthUuid } = await app.call<{ deviceAuthUuid: string }>('POST', '/v2/devices', {
    device: { name: 'a', swName: 'a', swVersion: '1', hwVersion: '1', serial: '1' },
    module: [],
  });
  const filters = { devices: [deviceAuthUuid] };
  expect(await statusOf('/v2/streams', stranger.token, 'POST', { kinds, filters })).toBe(404);
  const path = `/v2/measurements/stream?devices=${deviceAuthUuid}`;
  expect(await statusOf(path, stranger.token)).toBe(404);
});

test.each([
  ['no ticket', '/v2/streams', 401],
  ['an empty one', '/v2/streams?ticket=', 401],
  ['a made-up one', `/v2/streams?ticket=stream_${'A'.repeat(43)}`, 401],
  ['two', '/v2/streams?ticket=a&ticket=b', 401],
])('%s opens nothing', async (_what, path, status) => {
  expect(await statusOf(path)).toBe(status);
});

test.each([
  [{ kinds: [] }, '/kinds'],
  [{ kinds: ['values'] }, '/kinds/0'],
  [{ kinds: ['measurements'], filters: { maxHz: 0 } }, '/filters/maxHz'],
  [{ kinds: ['measurements'], filters: { device: 'x' } }, '/filters'],
])('%j is refused', async (asked, path) => {
  const { app } = await openAccount(service.url);
  await expect(app.call('POST', '/v2/streams', asked)).rejects.toThrow(
    new RegExp(`400 .*${path}`, 's'),
  );
});
