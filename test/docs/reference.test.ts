import { expect, test } from 'vitest';
import { listDocumentedRoutes } from '../../src/cli/documented-routes.ts';
import { createOpenApi } from '../../src/http/openapi.ts';
import { webhookDocs } from '../../src/notifications/hook-docs.ts';

const routes = listDocumentedRoutes();
const document = createOpenApi(routes, '1.2.3', webhookDocs) as unknown as {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, unknown> };
};
type Content = { 'application/json'?: { schema: { $ref?: string } } };
type Operation = {
  operationId: string;
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
