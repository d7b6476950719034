import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { listDocumentedRoutes } from '../../src/cli/documented-routes.ts';
import { scopes } from '../../src/http/request.ts';
import type { Route } from '../../src/http/route.ts';
import { configuration, openApp, send, type App, type Registration } from '../journeys/app.ts';
import { testService, withConsole, type TestService } from '../journeys/service.ts';
import { makeKey } from './open-key.ts';

const routes = listDocumentedRoutes().filter(({ auth }) => auth === 'account');
const named = routes.map((route): [string, Route] => [route.name ?? route.path, route]);

let service: TestService;
let app: App;
let uuid: string;
const keys = { all: '', labelled: '', foreign: '', expired: '', revoked: '' };
const without = new Map<string, string>();

beforeAll(async () => {
  let aheadMs = 0;
  const clocks = { clock: () => Date.now() + aheadMs, monotonicClock: () => performance.now() };
  service = await testService({}, { clocks, change: withConsole });
  app = await openApp(service.url);
  const other = await openApp(service.url);
  const device = await app.call<Registration>('POST', '/v2/devices', configuration);
  uuid = device.deviceAuthUuid;
  await app.call('PUT', `/v2/devices/${uuid}/labels`, { labels: ['cellar'] });
  keys.all = (await makeKey(app, { scopes })).key;
  keys.labelled = (await makeKey(app, { scopes, labels: ['attic'] })).key;
  keys.foreign = (await makeKey(other, { scopes })).key;
  keys.expired = (await makeKey(app, { scopes, expiresTs: clocks.clock() + 60_000 })).key;
  const { keyId, key } = await makeKey(app, { scopes });
  keys.revoked = key;
  await app.call('DELETE', `/v2/accounts/keys/${keyId}`);
  for (const scope of scopes) {
    const others = scopes.filter((one) => one !== scope);
    without.set(scope, (await makeKey(app, { scopes: others })).key);
  }
  aheadMs = 61_000;
});
afterAll(() => service?.close());

/** Calls a route and reads its status and detail. Closes an endless answer at once. */
async function call({ method, path }: Route, token?: string) {
  const [, of = ''] = /\{(\w+)\}/.exec(path) ?? [];
  const at = path.replace(/\{\w+\}/, of === 'deviceAuthUuid' ? uuid : randomUUID());
  const body = method === 'post' || method === 'put' ? {} : undefined;
  const response = await send(service.url + at, method.toUpperCase(), body, token);
  const detail = response.ok ? '' : ((await response.json()) as { detail: string }).detail;
  if (response.ok) await response.body?.cancel();
  return { status: response.status, detail };
}

test.each(named)('%s is closed to strangers, and to keys that have ended', async (_name, route) => {
  expect((await call(route)).status).toBe(401);
  for (const key of [keys.expired, keys.revoked, `sens_${'A'.repeat(43)}`, 'sens_'])
    expect((await call(route, key)).status).toBe(401);
});

test.each(named)('%s is open to its scope and to no other', async (_name, route) => {
  const { scope } = route;
  if (scope === undefined) {
    const { status, detail } = await call(route, keys.all);
    expect([status, detail]).toEqual([
      403,
      expect.stringContaining('An API key does not open this'),
    ]);
    return;
  }
  const refused = await call(route, without.get(scope));
  expect([refused.status, refused.detail]).toEqual([403, expect.stringContaining(scope)]);
});

const ofDevice = named.filter(([, { path }]) => path.includes('{deviceAuthUuid}'));

test.each(ofDevice)('%s of a device is 404 for others', async (_name, route) => {
  if (route.scope === undefined) return;
  // As sent, some bodies and queries are invalid, which is reported only to the device's owner.
  const isChecked = route.body === undefined && route.query?.safeParse({}).success !== false;
  const foreign = (await call(route, keys.foreign)).status;
  expect(isChecked ? foreign : [400, 404].includes(foreign)).toBe(isChecked ? 404 : true);
  const { status } = await call(route, keys.labelled);
  expect(status).toBe(route.isOfWholeAccount ? 403 : 404);
});

/** Statuses of requests for something that does not exist, or for nothing. */
const others: Record<string, number> = {
  getPurpose: 404,
  getPurposeCases: 404,
  getJob: 404,
  getBacktest: 404,
  listBacktestFirings: 404,
  listBacktestMoves: 404,
  listBacktestAlarms: 404,
  listBacktestDifferences: 404,
  listBacktestDevices: 404,
  getRollOut: 404,
  getProfile: 404,
  queryMeasurements: 400,
  queryEvents: 400,
  getAlarm: 404,
  getCommand: 404,
  listPurposeVersions: 404,
  getPurposeVersion: 404,
  comparePurposeVersions: 400,
  getConfigurationVersion: 404,
  compareConfigurationVersions: 400,
};

test('a key opens what its scopes name', async () => {
  const opened = named.filter(([, { scope, method }]) => scope && method === 'get');
  expect(opened.length).toBeGreaterThan(10);
  for (const [name, route] of opened) {
    const { status } = await call(route, keys.all);
    expect([name, status]).toEqual([name, others[name] ?? 200]);
  }
});
