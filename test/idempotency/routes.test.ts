import { afterAll, beforeAll, expect, test } from 'vitest';
import { listDocumentedRoutes } from '../../src/cli/documented-routes.ts';
import { fetchOperations, type Operation } from '../http/document.ts';
import { buildWorld, exampleOf, type World } from '../http/world.ts';
import { testService, type TestService } from '../journeys/service.ts';
import { ask } from './repeat.ts';

const posts = listDocumentedRoutes().filter(
  ({ method, auth }) => method === 'post' && auth === 'account',
);

/** Requests that have no further effect when they are repeated, and some that open a stream. */
const needNone = [
  'acknowledgeAlarm',
  'closeAlarm',
  'reopenAlarm',
  'snoozeAlarm',
  'makeStream',
  'importMeasurements',
  'previewDeviceAction',
  'restoreConfigurationVersion',
  'restorePurposeVersion',
  'installBacktest',
];

/** Their answers name nothing that a second request would create anew. */
const makeNothingNew = ['/v2/accounts/contacts/test', '/v2/accounts/push-tokens'];

let service: TestService;
let world: World;
let operations: Map<string, Operation>;
let document: Document;
beforeAll(async () => {
  service = await testService();
  world = await buildWorld(service.url);
  document = (await (await fetch(`${service.url}/v2/openapi.json`)).json()) as Document;
  operations = new Map((await fetchOperations(service.url)).map((one) => [one.name, one]));
});
afterAll(() => service?.close());

type Parameter = { in: string; name: string };
type Document = { paths: Record<string, { post?: { parameters?: Parameter[] } }> };

function headersOf(path: string): string[] {
  const parameters = document.paths[path]?.post?.parameters ?? [];
  return parameters.filter((one) => one.in === 'header').map(({ name }) => name);
}

const taking = posts.filter(({ takesKey }) => takesKey);

test('every POST that creates something takes a key', () => {
  const without = posts.filter(({ takesKey }) => !takesKey).map(({ name }) => name);
  expect(without.filter((name) => !needNone.includes(name ?? ''))).toEqual([]);
  expect(taking.length).toBeGreaterThan(5);
});

test.each(taking.map(({ path }) => path))(
  'POST %s answers a repetition with the same',
  async (path) => {
    const operation = operations.get(`post ${path}`) as Operation;
    expect(headersOf(path)).toEqual(['Idempotency-Key']);
    const { body, ...request } = exampleOf(operation, world);
    const asked = { path: request.path, token: world.token, key: crypto.randomUUID(), body };
    const first = await ask(service.url, asked);
    expect(first.status, first.text).toBe(200);
    expect(await ask(service.url, asked)).toEqual(first);
    expect(await ask(service.url, { ...asked, key: `"${asked.key}"` })).toEqual(first);
    // The same request with another key is a new one.
    const other = await ask(service.url, { ...asked, key: crypto.randomUUID() });
    expect(other.status).toBe(200);
    const { timestamp: _first, ...made } = first.body;
    const { timestamp: _other, ...madeAgain } = other.body;
    if (!makeNothingNew.includes(path)) expect(madeAgain).not.toEqual(made);
    const another = path === '/v2/accounts/keys' ? '/v2/purposes' : '/v2/accounts/keys';
    const misused = await ask(service.url, {
      ...asked,
      path: another,
      body: exampleOf(operations.get(`post ${another}`) as Operation, world).body,
    });
    expect(misused.status).toBe(422);
    expect(misused.body['type']).toBe('urn:sensorium:error:key-reused');
  },
);
