import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { routes } from './routes.ts';
import { startTestHttp } from './start.ts';
import { id, json, startThings, type Things } from './things.ts';

let http: Things;
beforeAll(async () => {
  http = await startThings();
});
afterAll(() => http.close());

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

  test('HEAD is GET without its content, OPTIONS lists the methods', async () => {
    const head = await http.fetch('/address', { method: 'HEAD' });
    expect([head.status, head.text]).toEqual([200, '']);
    const options = await http.fetch('/address', { method: 'OPTIONS' });
    expect([options.status, options.text]).toEqual([204, '']);
    expect(options.headers.get('allow')).toBe('GET, HEAD');
    const unknown = await http.fetch('/nowhere', { method: 'OPTIONS' });
    expect(unknown.status).toBe(404);
  });

  test('a path may be in capitals and end with a slash, but not contain half an escape', async () => {
    const statuses = ['/Address', '/address/', '/address?a=%zz', '/address%', '/things/%zz'].map(
      async (path) => (await http.fetch(path)).status,
    );
    expect(await Promise.all(statuses)).toEqual([200, 200, 200, 404, 404]);
  });

  test('a change under a condition is refused, because nothing has an entity tag', async () => {
    for (const tags of ['"a"', 'W/"a"', '"a", "b"', 'a', '""']) {
      const answer = await http.post('{"name":"x"}', { ...json, 'if-match': tags });
      expect([answer.status, answer.body['type']]).toEqual([
        412,
        'urn:sensorium:error:precondition-failed',
      ]);
      const read = await http.fetch('/address', { headers: { 'if-match': tags } });
      expect(read.status).toBe(200);
    }
    expect((await http.post('{"name":"x"}', { ...json, 'if-match': '*' })).status).toBe(200);
  });

  test('an internal error reveals nothing, but is in the log under its requestId', async () => {
    const answer = await http.fetch('/fail');
    expect(answer.status).toBe(500);
    expect(answer.text).not.toMatch(/secret|vault|at /);
    const { requestId } = answer.body as { requestId: string };
    const line = http.lines.find((text) => text.includes(requestId) && text.includes('vault'));
    expect(JSON.parse(line ?? '{}')).toMatchObject({ level: 50, path: '/fail' });
  });

  test('what is temporarily unavailable is 503 with Retry-After in whole seconds', async () => {
    const answer = await http.fetch('/wait');
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '3']);
  });

  test('no token, password or query is logged', async () => {
    const secret = randomBytes(12).toString('hex');
    await http.post(JSON.stringify({ name: secret, password: secret }), {
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

  test('CORS is closed except for the configured origins', async () => {
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

  test('X-Forwarded-For from a stranger is ignored', async () => {
    const closed = await startTestHttp({ routes });
    try {
      const headers = { 'x-forwarded-for': '198.51.100.7' };
      const { body } = await closed.fetch('/address', { headers });
      expect(body).toEqual({ address: '127.0.0.1' });
    } finally {
      await closed.close();
    }
  });

  test('what is not HTTP is refused, as JSON', async () => {
    const answer = await rawRequest(http.port, 'HELLO\r\n\r\n');
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(JSON.parse(answer.split('\r\n\r\n')[1] ?? '')).toMatchObject({ status: 400 });
    const large = await rawRequest(http.port, `GET / HTTP/1.1\r\nx: ${'y'.repeat(99_999)}\r\n\r\n`);
    expect(large).toMatch(/^HTTP\/1\.1 431 /);
    expect(large).toContain('The request line and the headers are larger than 16 KiB');
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
