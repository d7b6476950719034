import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { docsRoutes } from '../../src/http/docs.ts';
import { defineRoute } from '../../src/http/route.ts';
import { limitQuery, TimestampResponse, uuidParam } from '../../src/http/schema.ts';
import { startTestHttp, type TestHttp } from './start.ts';

const route = defineRoute({
  method: 'put',
  path: '/v2/things/{thingUuid}',
  summary: 'Change a thing',
  tag: 'Things',
  auth: 'account',
  errors: [409],
  params: z.object({ thingUuid: uuidParam }),
  query: z.object({ limit: limitQuery(10) }),
  body: z.object({ name: z.string().max(5), optional: z.int().optional() }),
  response: TimestampResponse,
  handler: async () => ({ timestamp: 1 }),
});
const asyncApi = {
  asyncapi: '3.0.0',
  info: { title: 'Devices', version: '1', description: '<script>alert(1)</script>' },
  channels: { measurements: { address: 'devices/{uuid}/up/measurements' } },
};

describe('the reference', () => {
  let http: TestHttp;
  beforeAll(async () => {
    const docs = docsRoutes([route], { version: '1.2.3', getAsyncApi: () => asyncApi });
    http = await startTestHttp({ routes: [route, ...docs] });
  });
  afterAll(() => http.close());

  test('is an OpenAPI document made of the schemas that validate', async () => {
    const { status, body } = await http.fetch('/v2/openapi.json');
    expect(status).toBe(200);
    expect(body).toMatchObject({ openapi: '3.1.0', info: { version: '1.2.3' } });
    const { paths } = body as { paths: Record<string, Record<string, unknown>> };
    expect(Object.keys(paths)).toEqual(['/v2/things/{thingUuid}']);
    expect(paths['/v2/things/{thingUuid}']?.['put']).toMatchObject({
      operationId: 'putV2ThingsThingUuid',
      security: [{ bearer: [] }],
      parameters: [
        { in: 'path', name: 'thingUuid', required: true, schema: { format: 'uuid' } },
        { in: 'query', name: 'limit', schema: { type: 'integer', minimum: 1, default: 10 } },
      ],
      requestBody: {
        required: true,
        content: { 'application/json': { schema: { required: ['name'] } } },
      },
      responses: {
        200: {},
        400: {},
        401: {},
        404: {},
        409: {},
        413: {},
        415: {},
        500: {},
        503: {},
      },
    });
  });

  test('is a page that loads nothing from elsewhere', async () => {
    const page = await http.fetch('/docs');
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('content-security-policy')).toContain("script-src 'self'");
    const links = [...page.text.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, link]) => link ?? '');
    expect(links.length).toBeGreaterThan(3);
    for (const link of links) {
      expect(link).toMatch(/^\/docs/);
      const { status, text } = await http.fetch(link);
      expect([link, status, text.length > 0]).toEqual([link, 200, true]);
    }
    expect(page.text).not.toMatch(/<script>|\son\w+=/);
  });

  test('of MQTT is a page, and the AsyncAPI document itself', async () => {
    expect((await http.fetch('/docs/mqtt.json')).body).toEqual(asyncApi);
    const { text } = await http.fetch('/docs/mqtt');
    expect(text).toContain('devices/{uuid}/up/measurements');
    expect(text).toContain('&lt;script&gt;');
    expect(text).not.toContain('<script>');
  });

  test.each(['swagger-ui.js', '..%2fpackage.json', 'package.json', '%2e%2e', 'constructor'])(
    'shows no other file: %s',
    async (file) => expect((await http.fetch(`/docs/${file}`)).status).toBe(404),
  );
});
