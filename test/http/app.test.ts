import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { DomainError } from '../../src/errors.ts';
import { defineRoute } from '../../src/http/route.ts';
import { limitQuery, timestampQuery, uuidParam } from '../../src/http/schema.ts';
import { startTestHttp, type TestHttp } from './start.ts';

const shared = { summary: 'A route', tag: 'Test', errors: [], response: z.unknown() } as const;

const routes = [
  defineRoute({
    ...shared,
    method: 'post',
    path: '/things/{id}',
    auth: 'account',
    params: z.object({ id: uuidParam }),
    query: z.object({ limit: limitQuery(10), start: timestampQuery.optional() }),
    body: z.object({ name: z.string(), tags: z.array(z.object({ 'a/b~c': z.int() })).default([]) }),
    handler: async ({ params, query, body, account }) => ({ params, query, body, account }),
  }),
  defineRoute({
    ...shared,
    method: 'get',
    path: '/fail',
    auth: 'none',
    handler: () => Promise.reject(new Error('select secret from vault')),
  }),
  defineRoute({
    ...shared,
    method: 'get',
    path: '/wait',
    auth: 'none',
    handler: () =>
      Promise.reject(new DomainError('unavailable', 'Away.', { retryAfterSeconds: 2.2 })),
  }),
  defineRoute({
    ...shared,
    method: 'get',
    path: '/address',
    auth: 'none',
    handler: async ({ request }) => ({ address: request.address }),
  }),
];

const id = '0f8fad5b-d9cb-469f-a165-70867728950e';
const json = { 'content-type': 'application/json', authorization: 'Bearer good' };
let http: TestHttp;
beforeAll(async () => {
  http = await startTestHttp({
    routes,
    corsOrigins: ['https://dashboard.example'],
    trustedProxies: ['127.0.0.1', '10.0.0.0/8'],
  });
});
afterAll(() => http.close());

const post = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = json) =>
  http.fetch(`/things/${id}`, { method: 'POST', body, headers });

describe('a route', () => {
  test('is handed parsed input only', async () => {
    const answer = await http.fetch(`/things/${id.toUpperCase()}/?limit=99&start=5&unknown=1`, {
      method: 'POST',
      headers: { ...json, 'content-type': 'application/json; charset=utf-8' },
      body: JSON.stringify({ name: 'x', unknown: 1 }),
    });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      params: { id },
      query: { limit: 10, start: 5 },
      body: { name: 'x', tags: [] },
      account: { accountId: 1, accountUuid: 'u', sessionId: 's' },
    });
  });

  test('answers 400 with all problems of query and body, places as JSON Pointers', async () => {
    const answer = await http.fetch(`/things/${id}?limit=0&start=x`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify({ tags: [{ 'a/b~c': 1 }, { 'a/b~c': 'x' }] }),
    });
    expect(answer.status).toBe(400);
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(answer.body).toEqual({
      type: 'urn:sensorium:error:invalid-input',
      title: 'Bad Request',
      status: 400,
      detail: expect.any(String),
      timestamp: expect.any(Number),
      requestId: answer.headers.get('x-request-id'),
      errors: ['limit', 'start', '/name', '/tags/1/a~1b~0c'].map((path) => ({
        path,
        message: expect.any(String),
      })),
    });
  });

  test.each(['nothing', '%zz', `${id}0`, "'"])('answers 404 for the identifier %s', async (bad) => {
    const answer = await http.fetch(`/things/${bad}`, {
      method: 'POST',
      headers: json,
      body: '{}',
    });
    expect(answer.status).toBe(404);
  });

  test.each([undefined, 'Bearer', 'Bearer bad', 'Basic Z29vZA==', 'good'])(
    'answers 401 before anything else for the credentials %s',
    async (authorization) => {
      const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
      const answer = await post('not json', { 'content-type': 'text/plain', ...headers });
      expect(answer.status).toBe(401);
      expect(answer.headers.get('www-authenticate')).toBe('Bearer');
    },
  );
});

describe('a body', () => {
  const deep = (open: string, n: number) => open.repeat(n);
  test.each([
    ['no JSON', '{"name', 400],
    ['nothing', '', 400],
    ['__proto__', '{"name":"x","__proto__":{"admin":true}}', 400],
    ['__proto__ far below', '{"name":"x","a":[{"\\u005f_proto__":1}]}', 400],
    ['U+0000', '{"name":"a\\u0000b"}', 400],
    ['half a surrogate pair', '{"name":"\\ud800"}', 400],
    ['65 levels', `{"name":"x","a":${deep('[', 64)}${']'.repeat(64)}}`, 400],
    ['half a million arrays', deep('[', 500_000), 400],
    ['half a million objects', deep('{"a":', 200_000), 400],
    ['64 levels', `{"name":"x","a":${deep('[', 63)}${']'.repeat(63)}}`, 200],
    ['brackets in a string', `{"name":"${'[{'.repeat(500)}\\"[["}`, 200],
    ['more than 1 MiB', JSON.stringify({ name: 'x'.repeat(1_048_576) }), 413],
    ['1 MiB', JSON.stringify({ name: 'x'.repeat(1_048_576 - 11) }), 200],
  ])('of %s', async (_name, body, status) => {
    expect((await post(body)).status).toBe(status);
  });

  test.each([
    ['text/plain', 415],
    ['application/x-www-form-urlencoded', 415],
    ['application/json; charset=utf-16', 415],
    ['application/merge-patch+json', 200],
    ['APPLICATION/JSON', 200],
  ])('of type %s', async (type, status) => {
    const answer = await post('{"name":"x"}', { ...json, 'content-type': type });
    expect(answer.status).toBe(status);
  });

  test('that unpacks to more than 1 MiB is 413, whatever it weighs packed', async () => {
    const bomb = new Uint8Array(gzipSync(`{"name":"${'x'.repeat(50_000_000)}"}`));
    expect((await post(bomb, { ...json, 'content-encoding': 'gzip' })).status).toBe(413);
    const small = new Uint8Array(gzipSync('{"name":"x"}'));
    expect((await post(small, { ...json, 'content-encoding': 'gzip' })).status).toBe(200);
    expect((await post('{}', { ...json, 'content-encoding': 'rot13' })).status).toBe(415);
  });
});

describe('everything else', () => {
  test('unknown paths are 404, unknown methods 405 with Allow, as JSON', async () => {
    const unknown = await http.fetch('/nowhere');
    expect([unknown.status, unknown.body['status']]).toEqual([404, 404]);
    for (const method of ['GET', 'DELETE', 'PATCH', 'PROPFIND']) {
      const answer = await http.fetch(`/things/${id}`, { method });
      expect([answer.status, answer.body['status']]).toEqual([405, 405]);
      expect(answer.headers.get('allow')).toBe('POST');
    }
  });

  test('a fault of our own says nothing of itself, but is in the log under its requestId', async () => {
    const answer = await http.fetch('/fail');
    expect(answer.status).toBe(500);
    expect(answer.text).not.toMatch(/secret|vault|at /);
    const { requestId } = answer.body as { requestId: string };
    const line = http.lines.find((text) => text.includes(requestId) && text.includes('vault'));
    expect(JSON.parse(line ?? '{}')).toMatchObject({ level: 50, path: '/fail' });
  });

  test('what is away for now is 503 with Retry-After in whole seconds', async () => {
    const answer = await http.fetch('/wait');
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '3']);
  });

  test('no token, password or query is logged', async () => {
    const secret = randomBytes(12).toString('hex');
    await post(JSON.stringify({ name: secret, password: secret }), {
      ...json,
      authorization: `Bearer ${secret}`,
    });
    await http.fetch(`/fail?token=${secret}`);
    expect(http.lines.length).toBeGreaterThan(0);
    expect(http.lines.join('\n')).not.toContain(secret);
  });

  test('security headers are on answers and on errors alike, and none forces HTTPS', async () => {
    for (const path of ['/address', '/nowhere', '/fail', `/things/${id}`]) {
      const { headers } = await http.fetch(path);
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('content-security-policy')).toContain("default-src 'none'");
      expect(headers.get('x-frame-options')).toBe('DENY');
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('strict-transport-security')).toBeNull();
      expect(headers.get('content-security-policy')).not.toContain('upgrade-insecure');
    }
  });

  test('CORS is closed but for the origins named', async () => {
    const ask = (origin: string, method = 'GET') =>
      http.fetch('/address', {
        method,
        headers: { origin, 'access-control-request-method': 'GET' },
      });
    const allowed = await ask('https://dashboard.example');
    expect(allowed.headers.get('access-control-allow-origin')).toBe('https://dashboard.example');
    const preflight = await ask('https://dashboard.example', 'OPTIONS');
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-headers')).toContain('Authorization');
    for (const method of ['GET', 'OPTIONS']) {
      const refused = await ask('https://evil.example', method);
      expect(refused.headers.get('access-control-allow-origin')).toBeNull();
    }
  });

  test.each([
    ['', '127.0.0.1'],
    ['198.51.100.7', '198.51.100.7'],
    ['6.6.6.6, 198.51.100.7', '198.51.100.7'],
    ['6.6.6.6, 198.51.100.7, 10.1.2.3', '198.51.100.7'],
    ['6.6.6.6, rubbish', '127.0.0.1'],
    ['::ffff:198.51.100.7', '198.51.100.7'],
  ])(
    'X-Forwarded-For "%s" counts as far as trusted proxies wrote it: %s',
    async (xff, expected) => {
      const headers: Record<string, string> = xff === '' ? {} : { 'x-forwarded-for': xff };
      expect((await http.fetch('/address', { headers })).body).toEqual({ address: expected });
    },
  );

  test('X-Forwarded-For of a stranger counts for nothing', async () => {
    const closed = await startTestHttp({ routes });
    try {
      const headers = { 'x-forwarded-for': '198.51.100.7' };
      const { body } = await closed.fetch('/address', { headers });
      expect(body).toEqual({ address: '127.0.0.1' });
    } finally {
      await closed.close();
    }
  });

  test('what is no HTTP is told so, as JSON', async () => {
    const answer = await rawRequest(http.port, 'HELLO\r\n\r\n');
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(JSON.parse(answer.split('\r\n\r\n')[1] ?? '')).toMatchObject({ status: 400 });
    const large = await rawRequest(http.port, `GET / HTTP/1.1\r\nx: ${'y'.repeat(99_999)}\r\n\r\n`);
    expect(large).toMatch(/^HTTP\/1\.1 431 /);
  });
});

function rawRequest(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(text));
    socket.on('data', (chunk) => (answer += String(chunk)));
    socket.on('close', () => resolve(answer));
    socket.on('error', (error) => (answer === '' ? reject(error) : resolve(answer)));
  });
}
