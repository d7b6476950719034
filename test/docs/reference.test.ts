import { expect, test } from 'vitest';
import { listDocumentedRoutes } from '../../src/cli/documented-routes.ts';
import { createOpenApi } from '../../src/http/openapi.ts';
import { webhookDocs } from '../../src/notifications/hook-docs.ts';

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

test('each operation has a name that says what it does, and no other one has it', () => {
  const names = operations.map(({ operationId }) => operationId);
  expect(new Set(names)).toEqual(new Set(routes.map(({ name }) => name)));
  expect(new Set(names).size).toBe(names.length);
  for (const name of names) expect(name).toMatch(/^[a-z]+[A-Z][A-Za-z]+$/);
});

test('what is asked and answered has a name in generated code', () => {
  for (const { operationId, requestBody, responses } of operations) {
    const contents = [requestBody?.content, ...Object.values(responses).map((it) => it.content)];
    for (const content of contents) {
      const schema = content?.['application/json']?.schema;
      if (schema)
        expect([operationId, schema]).toEqual([operationId, { $ref: expect.any(String) }]);
    }
  }
});

test('each name of a schema is in use, and there is each that is used', () => {
  const text = JSON.stringify(document);
  const used = [...text.matchAll(/#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name);
  expect([...new Set(used)].toSorted()).toEqual(
    Object.keys(document.components.schemas).toSorted(),
  );
  expect(Object.keys(document.components.schemas)).toContain('Measurement');
});

test('every object has a name, also within others', () => {
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

test('each operation that takes a body shows one that works', () => {
  const without = operations.filter((it) => {
    const content = it.requestBody?.content['application/json'];
    return content !== undefined && content.example === undefined;
  });
  expect(without.map(({ operationId }) => operationId)).toEqual([]);
});

test('the reference is of the service that it comes from, whatever its address', () => {
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
