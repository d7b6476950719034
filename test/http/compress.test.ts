import { once } from 'node:events';
import { randomBytes } from 'node:crypto';
import { get, type IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { brotliCompressSync, createGunzip, gunzipSync } from 'node:zlib';
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { listDocumentedRoutes } from '../../src/cli/documented-routes.ts';
import { stream } from '../../src/http/answer.ts';
import { defineRoute, type Route } from '../../src/http/route.ts';
import { startTestHttp, type TestHttp } from './start.ts';

let http: TestHttp;
afterEach(() => http?.close());

const line = `{"deviceAuthUuid":"0f8fad5b-d9cb-469f-a165-70867728950e","sId":"0x10","val":21.5}\n`;
const large = { text: line.repeat(100) };

type Members = Partial<Omit<Route, 'auth'>>;

function route(path: string, answer: () => unknown, members: Members = {}): Route {
  return {
    ...defineRoute({
      method: 'get',
      path,
      summary: 'A route',
      tag: 'Test',
      auth: 'none',
      errors: [],
      response: z.unknown(),
      handler: async () => answer(),
    }),
    ...members,
  };
}

/** The answer as it was sent. */
async function ask(path: string, encodings?: string, method = 'GET') {
  const headers = encodings === undefined ? {} : { 'accept-encoding': encodings };
  const request = get(`${http.url}${path}`, { headers, method });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const bytes = await buffer(response);
  return { headers: response.headers, bytes };
}

const encodingOf = async (...asked: Parameters<typeof ask>) =>
  (await ask(...asked)).headers['content-encoding'];

async function* lines(count: number) {
  for (let n = 0; n < count; n += 1) yield line;
}

test('an answer is compressed for clients that accept gzip, and unchanged for others', async () => {
  http = await startTestHttp({ routes: [route('/large', () => large)] });
  for (const encodings of ['gzip', 'gzip, deflate, br', '*', 'GZIP;q=0.5', 'br;q=1, gzip']) {
    const { headers, bytes } = await ask('/large', encodings);
    expect(headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'Origin, Accept-Encoding' });
    expect(headers['content-length']).toBe(String(bytes.length));
    expect(bytes.length).toBeLessThan(line.length * 10);
    expect(JSON.parse(gunzipSync(bytes).toString())).toEqual(large);
  }
  for (const encodings of [undefined, '', 'br', 'identity', 'gzip;q=0', 'identity, gzip;q=0.5']) {
    const { headers, bytes } = await ask('/large', encodings);
    expect(headers['content-encoding']).toBeUndefined();
    expect(headers['vary']).toBe('Origin, Accept-Encoding');
    expect(JSON.parse(bytes.toString())).toEqual(large);
  }
});

test('a streamed answer is compressed too', async () => {
  const csv = () => stream('text/csv', lines(5_000));
  http = await startTestHttp({ routes: [route('/csv', csv)] });
  const { headers, bytes } = await ask('/csv', 'gzip');
  expect(headers['content-type']).toMatch(/^text\/csv/);
  expect(gunzipSync(bytes).toString()).toBe(line.repeat(5_000));
});

test('what is compressed already is sent unchanged', async () => {
  const packed = brotliCompressSync(line.repeat(1_000));
  const stored = defineRoute({
    method: 'get',
    path: '/stored',
    summary: 'A route',
    tag: 'Test',
    auth: 'none',
    errors: [],
    response: z.unknown(),
    handler: async ({ request }) => {
      request.setHeader('Content-Encoding', 'br');
      return stream('text/javascript', Readable.from([packed]));
    },
  });
  http = await startTestHttp({ routes: [stored] });
  const { headers, bytes } = await ask('/stored', 'gzip, br');
  expect(headers['content-encoding']).toBe('br');
  expect(bytes.equals(packed)).toBe(true);
});

test('answers that are small, have secrets, are made by a POST or are not text stay uncompressed', async () => {
  const events = () => stream('text/event-stream', lines(100));
  const page = () => stream('text/html; charset=utf-8', lines(100));
  const answer = () => large;
  http = await startTestHttp({
    routes: [
      route('/small', () => ({ text: line })),
      route('/secret', answer, { secrets: 'always' }),
      route('/tokens', answer, { secrets: 'sessions' }),
      route('/made', answer, { method: 'post' }),
      route('/events', events, { isEndless: true }),
      route('/page', page),
    ],
  });
  expect(await encodingOf('/small', 'gzip')).toBeUndefined();
  expect(await encodingOf('/secret', 'gzip')).toBeUndefined();
  expect(await encodingOf('/tokens', 'gzip')).toBeUndefined();
  expect(await encodingOf('/made', 'gzip', 'POST')).toBeUndefined();
  expect(await encodingOf('/events', 'gzip')).toBeUndefined();
  expect(await encodingOf('/page', 'gzip')).toBeUndefined();
});

test('answers to an API key contain no tokens, and are compressed', async () => {
  const asked = { ...route('/tokens', () => large, { secrets: 'sessions' }), auth: 'account' };
  const key = { keyId: 'k', scopes: ['devices:read' as const], labels: [] };
  http = await startTestHttp({
    routes: [{ ...asked, auth: 'account', scope: 'devices:read' }],
    authenticate: async (token) => ({
      accountId: 1,
      accountUuid: 'u',
      sessionId: 's',
      ...(token === 'key' ? { key } : {}),
    }),
  });
  const encoding = async (token: string) =>
    (await http.fetch('/tokens', { headers: { authorization: `Bearer ${token}` } })).headers.get(
      'content-encoding',
    );
  expect(await encoding('key')).toBe('gzip');
  expect(await encoding('session')).toBeNull();
});

test('each route whose answer has a secret declares it, or is no GET', () => {
  // The number of push tokens, and their identifiers in paths, are no secrets.
  const secret = /"(?!pushTokens"|tokenId")(\w*(?:token|secret|password)\w*|key)":\{/i;
  const told = listDocumentedRoutes().filter(({ response }) =>
    secret.test(JSON.stringify(z.toJSONSchema(response, { unrepresentable: 'any' }))),
  );
  expect(told.length).toBeGreaterThan(5);
  const silent = told.filter(({ method, secrets }) => method === 'get' && !secrets);
  expect(silent.map(({ path }) => path)).toEqual([]);
});

test('a slow reader pauses the source after a few blocks', async () => {
  let written = 0;
  let hasEnded = false;
  // Incompressible.
  const blocks = (async function* () {
    try {
      for (; written < 2_000; written += 1) yield noise();
    } finally {
      hasEnded = true;
    }
  })();
  http = await startTestHttp({ routes: [route('/noise', () => stream('text/csv', blocks))] });
  const request = get(`${http.url}/noise`, { headers: { 'accept-encoding': 'gzip' } });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  // Nobody reads, so the source stops once all buffers are full.
  let seen = -1;
  await expect
    .poll(
      () => {
        const isStill = seen === written;
        seen = written;
        return isStill;
      },
      { interval: 200, timeout: 60_000 },
    )
    .toBe(true);
  expect(written).toBeLessThan(500);
  expect(hasEnded).toBe(false);
  response.destroy();
  await expect.poll(() => hasEnded).toBe(true);
});

const noise = () => randomBytes(49_152).toString('base64');

test('if the source fails, the answer is cut off and does not look complete', async () => {
  const broken = async function* () {
    for (let n = 0; n < 1_000; n += 1) yield noise().slice(0, 1_000);
    throw new Error('the source broke');
  };
  http = await startTestHttp({ routes: [route('/broken', () => stream('text/csv', broken()))] });
  await expect(ask('/broken', 'gzip')).rejects.toMatchObject({ code: 'ECONNRESET' });
  expect(http.lines.join('')).toContain('request.broken-off');
});

test('answers beyond the limit of concurrent compressions are sent uncompressed', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const held = async function* () {
    yield line;
    await promise;
  };
  http = await startTestHttp({
    routes: [route('/held', () => stream('text/csv', held())), route('/large', () => large)],
    compress: { maxAtOnce: 1 },
  });
  const request = get(`${http.url}/held`, { headers: { 'accept-encoding': 'gzip' } });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  expect(await encodingOf('/large', 'gzip')).toBeUndefined();
  resolve();
  const bytes = await buffer(response);
  expect(gunzipSync(bytes).toString()).toBe(line);
  expect(await encodingOf('/large', 'gzip')).toBe('gzip');
});

test('what is streamed piece by piece arrives compressed piece by piece', async () => {
  const read = Promise.withResolvers<void>();
  async function* rows() {
    // Repetitive rows: gzip would buffer all of them.
    yield line.repeat(1_000);
    await read.promise;
    yield line;
  }
  http = await startTestHttp({ routes: [route('/rows', () => stream('text/csv', rows()))] });
  const request = get(`${http.url}/rows`, { headers: { 'accept-encoding': 'gzip' } });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  expect(response.headers['content-encoding']).toBe('gzip');
  let text = '';
  const rest = createGunzip();
  rest.on('data', (chunk: Buffer) => (text += chunk.toString()));
  response.pipe(rest);
  await expect.poll(() => text.length).toBe(line.length * 1_000);
  read.resolve();
  await once(rest, 'end');
  expect(text).toBe(line.repeat(1_001));
});
