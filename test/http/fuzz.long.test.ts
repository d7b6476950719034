import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listDocumentedRoutes } from '../../src/cli/documented-routes.ts';
import { type TestService, testService, withConsole } from '../journeys/service.ts';
import { fitting, spoilt, strange } from './arbitrary.ts';
import { fetchOperations, findDeviations, type Operation } from './document.ts';
import { buildWorld, exampleOf, send, type World } from './world.ts';

const names = listDocumentedRoutes()
  .filter(({ params, query, body }) => params ?? query ?? body)
  .map(({ method, path }) => `${method} ${path}`);

describe('whatever is sent, the document describes the answer', () => {
  let service: TestService;
  let operations: Map<string, Operation>;
  beforeAll(async () => {
    // The mail server is away, but requests for mails are answered as usual.
    service = await testService(
      { SMTP_URL: 'smtp://127.0.0.1:1' },
      { change: (config) => withConsole(withoutThrottle(config)) },
    );
    operations = new Map((await fetchOperations(service.url)).map((each) => [each.name, each]));
  });
  afterAll(() => service.close());

  test.each(names)('%s', async (name) => {
    const operation = operations.get(name) as Operation;
    const world = await buildWorld(service.url);
    await fc.assert(
      fc.asyncProperty(requestsOf(operation, world), async (request) => {
        const answer = await send(service.url, request);
        expect(answer.status).toBeLessThan(500);
        expect(findDeviations(operation, answer)).toEqual([]);
      }),
      { numRuns },
    );
  });
});

/** Set it higher for a longer run. A failure prints its seed. */
const numRuns = Number(process.env['FUZZ_RUNS'] ?? 25);

type Config = Parameters<NonNullable<NonNullable<Parameters<typeof testService>[1]>['change']>>[0];

/** Otherwise most logins would be refused before they are checked. */
function withoutThrottle(config: Config): Config {
  const plenty = { attempts: 1_000_000, windowSeconds: 60 };
  const failedLogins = { perAccount: plenty, perAddress: plenty };
  return {
    ...config,
    accounts: { ...config.accounts, failedLogins, registrationsPerAddress: plenty },
  };
}

/** Requests for an operation, with identifiers, query and body each valid, nearly valid, or anything. */
function requestsOf(operation: Operation, world: World) {
  const ids = Object.values(world.ids);
  const identifiers = fc.record(
    Object.fromEntries(
      operation.pathParameters.map(({ name }) => [name, identifier(world, name)] as const),
    ),
  );
  const query = fc.record(
    Object.fromEntries(
      operation.queryParameters.map(({ name, schema }) => {
        const fits = { arbitrary: fitting(schema, ids), weight: 9 };
        return [name, fc.oneof(fits, { arbitrary: strange, weight: 1 })] as const;
      }),
    ),
    { requiredKeys: [] },
  );
  return fc
    .record({ identifiers, query, body: bodies(operation, world, ids) })
    .map(({ identifiers: path, query: search, body: sent }) => {
      const request = exampleOf(operation, world, { ...world.ids, ...path });
      const [bare = ''] = request.path.split('?');
      return { ...request, path: bare + queryString(search), body: sent };
    });
}

/** A valid one, one from the schema, or anything; and the first two with something wrong. */
function bodies(operation: Operation, world: World, ids: string[]): fc.Arbitrary<unknown> {
  if (!operation.body) return fc.constant(undefined);
  const right = fc.constant(exampleOf(operation, world).body);
  const sound = fc.oneof(right, fitting(operation.body, ids));
  return fc.oneof(sound, spoilt(right), spoilt(sound), strange, fc.constant(undefined));
}

function identifier(world: World, name: string): fc.Arbitrary<string> {
  const own = (world.ids as Record<string, string>)[name] ?? '';
  const odd = fc
    .oneof(
      fc.string({ minLength: 1 }),
      strange.map((value) => JSON.stringify(value)),
    )
    .map(encode);
  // URLs treat these as "here" or "above", so the path would be another one.
  const usable = odd.filter((text) => !['', '.', '..'].includes(text));
  return fc.oneof(fc.constant(own), fc.constant(own.toUpperCase()), fc.uuid(), usable);
}

function queryString(query: Record<string, unknown>): string {
  const pairs = Object.entries(query).map(([name, value]) => {
    return `${name}=${encode(typeof value === 'string' ? value : JSON.stringify(value))}`;
  });
  return pairs.length === 0 ? '' : `?${pairs.join('&').slice(0, 8_000)}`;
}

function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}
