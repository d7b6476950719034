import { expect, test } from 'vitest';
import { listDocumentedRoutes } from '../../src/cli/documented-routes.ts';
import { createOpenApi } from '../../src/http/openapi.ts';
import { webhookDocs } from '../../src/notifications/webhook-docs.ts';
import { getSection } from './readme.ts';

const routes = listDocumentedRoutes();
const document = createOpenApi(routes, '1.2.3', webhookDocs) as unknown as {
  paths: Record<string, Record<string, Operation>>;
  servers: unknown;
  components: { schemas: Record<string, unknown> };
};
type Content = { 'application/json'?: { schema: { $ref?: string }; example?: unknown } };
type Operation = {
  operationId: string;
  parameters?: object[];
  requestBody?: { content: Content };
  responses: Record<string, { content?: Content }>;
};
const operations = Object.values(document.paths).flatMap((path) => Object.values(path));

test('each operation has a name that says what it does, and no two share one', () => {
  const names = operations.map(({ operationId }) => operationId);
  expect(new Set(names)).toEqual(new Set(routes.map(({ name }) => name)));
  expect(new Set(names).size).toBe(names.length);
  for (const name of names) expect(name).toMatch(/^[a-z]+[A-Z][A-Za-z]+$/);
});

test('requests and answers have names in generated code', () => {
  for (const { operationId, requestBody, responses } of operations) {
    const contents = [requestBody?.content, ...Object.values(responses).map((it) => it.content)];
    for (const content of contents) {
      const schema = content?.['application/json']?.schema;
      if (schema)
        expect([operationId, schema]).toEqual([operationId, { $ref: expect.any(String) }]);
    }
  }
});

test('every schema name is used, and every used one exists', () => {
  const text = JSON.stringify(document);
  const used = [...text.matchAll(/#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name);
  expect([...new Set(used)].toSorted()).toEqual(
    Object.keys(document.components.schemas).toSorted(),
  );
  expect(Object.keys(document.components.schemas)).toContain('Measurement');
});

test('every object has a name, even within others', () => {
  const inline: string[] = [];
  const visit = (part: unknown, path: string, isNamed: boolean): void => {
    if (typeof part !== 'object' || part === null) return;
    if (
      !isNamed &&
      'properties' in part &&
      'type' in part &&
      Object.keys(part.properties as object).length > 0
    )
      inline.push(path);
    for (const [key, inner] of Object.entries(part))
      visit(inner, `${path}/${key}`, path === '#/components/schemas');
  };
  visit(document, '#', false);
  expect(inline).toEqual([]);
  const names = Object.keys(document.components.schemas);
  expect(names).toEqual(
    expect.arrayContaining(
      'Purpose State PurposeEvent Cause Thresholds Actions SmsAction CloudAction EngineAction DisplayAction'
        .concat(
          ' Configuration DeviceDescription Module Sense Position Alarm Event Warning Problem',
        )
        .split(' '),
    ),
  );
});

test('names do not depend on the order of the routes', () => {
  const turned = createOpenApi(routes.toReversed(), '1.2.3', webhookDocs);
  expect(turned.components?.schemas).toEqual(document.components.schemas);
});

test('each operation with a body shows one that works', () => {
  const without = operations.filter((it) => {
    const content = it.requestBody?.content['application/json'];
    return content !== undefined && content.example === undefined;
  });
  expect(without.map(({ operationId }) => operationId)).toEqual([]);
});

test('the reference describes the service that serves it, whatever its address', () => {
  expect(document.servers).toEqual([{ url: '/', description: 'This service' }]);
});

test('each parameter says what it is for', () => {
  type Parameter = { name: string; in: string; description?: string };
  const silent = operations.flatMap(({ operationId, parameters = [] }: Operation) =>
    (parameters as Parameter[])
      .filter((it) => it.in === 'query' && it.description === undefined)
      .map(({ name }) => `${operationId} ${name}`),
  );
  expect(silent).toEqual([]);
});

type Parameter = {
  name: string;
  in: string;
  description?: string;
  schema: { default?: number; minimum?: number; anyOf?: { type: string; format?: string }[] };
};
type Headers = { headers?: Record<string, unknown> };

/** The reference's lists, from the table in docs/specification.md. */
function documentedLists() {
  const rows = getSection('Lists', 'docs/specification.md').matchAll(
    /^\| `(\/[^`]+)` +\|(.*)\|$/gm,
  );
  return [...rows].map(([, path = '', rest = '']) => {
    const [absent, most, order, times] = rest.split('|').map((cell) => cell.trim());
    return { path, absent, most, order, times };
  });
}

const getters = Object.entries(document.paths).flatMap(([path, { get }]) => {
  if (!get || !path.startsWith('/v')) return [];
  const parameters = ((get.parameters ?? []) as Parameter[]).filter((one) => one.in === 'query');
  const named = (name: string) => parameters.find((one) => one.name === name);
  return [{ path, get, named }];
});

test('the table of lists agrees with the reference: limit, times, order', () => {
  const table = new Map(documentedLists().map((row) => [row.path, row]));
  expect(table.size).toBeGreaterThan(15);
  for (const path of table.keys()) expect(getters.map((getter) => getter.path)).toContain(path);
  for (const { path, named } of getters) {
    const [limit, order] = [named('limit'), named('order')];
    const row = table.get(path);
    if (!limit && !order && !named('start') && !row) continue;
    const said = limit?.description ?? '';
    expect(row, path).toMatchObject({
      absent: limit ? String(limit.schema.default ?? /(\d+) if absent/.exec(said)?.[1]) : 'all',
      most: limit ? (/at most (\d+)/i.exec(said)?.[1] ?? 'a number') : 'all',
      times: named('start') ? 'yes' : '',
      order: order ? expect.stringContaining('`order`') : expect.not.stringContaining('`order`'),
    });
  }
});

test('every list has limit, cursor, start and end in the same form', () => {
  for (const { path, get, named } of getters) {
    const limit = named('limit');
    if (limit) expect(limit.schema, path).toMatchObject({ type: 'integer', minimum: 1 });
    if (named('cursor')) {
      expect(limit, path).toBeDefined();
      expect((get.responses['200'] as Headers).headers, path).toHaveProperty('Link');
    }
    expect(named('start') === undefined, path).toBe(named('end') === undefined);
    for (const name of ['start', 'end'])
      if (named(name))
        expect(named(name)?.schema.anyOf, path).toEqual([
          expect.objectContaining({ type: 'integer', minimum: 0 }),
          { type: 'string', format: 'date-time' },
          { type: 'string', format: 'date' },
        ]);
  }
});

test('every answer that is a list is in the table, except objects with lists inside', () => {
  const table = new Set(documentedLists().map(({ path }) => path));
  const inside = [
    // Single things, whose lists belong to them.
    '/v2/devices/{deviceAuthUuid}',
    '/v2/devices/{deviceAuthUuid}/evaluation',
    '/v2/devices/profile/{pId}',
    '/v2/profiles/{pId}',
    '/v2/purposes/{purposeUuid}',
    '/v2/purposes/{purposeUuid}/cases',
    '/v2/purposes/{purposeUuid}/diff',
    '/v2/purposes/{purposeUuid}/versions/{version}',
    '/v2/devices/{deviceAuthUuid}/configuration/diff',
    '/v2/devices/{deviceAuthUuid}/configuration/versions/{version}',
    '/v2/jobs/{jobId}',
    '/v2/backtests/{backtestId}',
    '/v2/alarms/{alarmId}',
    '/v2/status',
  ];
  const schemas = document.components.schemas as Record<
    string,
    { properties?: Record<string, { type?: string }> }
  >;
  for (const { path, get } of getters) {
    const ref = get.responses['200']?.content?.['application/json']?.schema.$ref ?? '';
    const properties = schemas[ref.split('/').at(-1) ?? '']?.properties ?? {};
    const hasList = Object.values(properties).some(({ type }) => type === 'array');
    if (hasList && !inside.includes(path)) expect([...table], path).toContain(path);
  }
});
