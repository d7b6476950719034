import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { id, json, startThings, type Things } from './things.ts';

let http: Things;
beforeAll(async () => {
  http = await startThings();
});
afterAll(() => http.close());

describe('a route', () => {
  test('gets parsed input only', async () => {
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

  test('answers 400 with all problems of query and body, with JSON Pointers', async () => {
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
      const answer = await http.post('not json', { 'content-type': 'text/plain', ...headers });
      expect(answer.status).toBe(401);
      expect(answer.headers.get('www-authenticate')).toBe('Bearer');
    },
  );
});

test('a log line has only the beginning of a very long path', async () => {
  http.lines.length = 0;
  expect((await http.fetch(`/${'a'.repeat(12_000)}`)).status).toBe(404);
  await expect.poll(() => http.lines.length).toBeGreaterThan(0);
  const [line] = http.lines.map((one) => JSON.parse(one) as { path: string });
  expect(line?.path).toBe(`/${'a'.repeat(255)}`);
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
    ['20,001 opening brackets and commas', `{"name":"x","a":[0${',0'.repeat(19_998)}]}`, 400],
    ['20,000 of them', `{"name":"x","a":[0${',0'.repeat(19_997)}]}`, 200],
    ['arrays in an array, 20,001 in all', `{"name":"x","a":[${'[],'.repeat(9_999)}[]]}`, 400],
    ['commas in a text', `{"name":"${','.repeat(500_000)}"}`, 200],
    ['commas behind an escaped quote', `{"name":"\\"${','.repeat(30_000)}\\\\"}`, 200],
    ['64 levels', `{"name":"x","a":${deep('[', 63)}${']'.repeat(63)}}`, 200],
    ['brackets in a string', `{"name":"${'[{'.repeat(500)}\\"[["}`, 200],
    ['more than 1 MiB', JSON.stringify({ name: 'x'.repeat(1_048_576) }), 413],
    ['1 MiB', JSON.stringify({ name: 'x'.repeat(1_048_576 - 11) }), 200],
  ])('of %s', async (_name, body, status) => {
    expect((await http.post(body)).status).toBe(status);
  });

  test.each([
    ['{"name": "x",\n "tags": [1 2]}', 'line 2, column 13: expected , or ], found "2"'],
    ['{"name"', 'line 1, column 8: expected :, found the end of the body'],
  ])('that is no JSON, %j, is told where it is none', async (body, place) => {
    const { detail } = (await http.post(body)).body as { detail: string };
    expect(detail).toBe(`The body is not JSON: ${place}.`);
  });

  test.each([
    ['Latin-1', Buffer.from('{"name":"Kühlraum Süd"}', 'latin1'), 400],
    ['half a character', Buffer.from('{"name":"ü"}').subarray(0, 10), 400],
    ['a surrogate in UTF-8', Buffer.from('7b226e616d65223a22eda080227d', 'hex'), 400],
    ['UTF-8', Buffer.from('{"name":"Kühlraum Süd"}'), 200],
    ['UTF-8 behind a byte order mark', Buffer.from('\uFEFF{"name":"Kühlraum Süd"}'), 200],
  ])('in %s, packed or not', async (_name, bytes, status) => {
    for (const encoding of ['identity', 'gzip']) {
      const body = new Uint8Array(encoding === 'gzip' ? gzipSync(bytes) : bytes);
      const answer = await http.post(body, { ...json, 'content-encoding': encoding });
      expect(answer.status).toBe(status);
      const told = answer.body as { detail?: string; body?: { name: string } };
      if (status === 400) expect(told.detail).toBe('The body is not UTF-8.');
      else expect(told.body?.name).toBe('Kühlraum Süd');
    }
  });

  test('of a query that is not percent-encoded UTF-8: the parameter is named', async () => {
    const answer = await http.fetch(`/things/${id}?limit=1&%73tart=%FC`, {
      method: 'POST',
      headers: json,
      body: '{"name":"x"}',
    });
    expect(answer.status).toBe(400);
    expect((answer.body as { errors: unknown }).errors).toEqual([
      { path: 'start', message: 'is not percent-encoded UTF-8' },
    ]);
  });

  test.each([
    ['text/plain', 415],
    ['application/x-www-form-urlencoded', 415],
    ['application/json; charset=utf-16', 415],
    ['application/merge-patch+json', 200],
    ['APPLICATION/JSON', 200],
  ])('of type %s', async (type, status) => {
    const answer = await http.post('{"name":"x"}', { ...json, 'content-type': type });
    expect(answer.status).toBe(status);
  });

  test('that decompresses to more than 1 MiB is 413, whatever its compressed size', async () => {
    const bomb = new Uint8Array(gzipSync(`{"name":"${'x'.repeat(50_000_000)}"}`));
    expect((await http.post(bomb, { ...json, 'content-encoding': 'gzip' })).status).toBe(413);
    const small = new Uint8Array(gzipSync('{"name":"x"}'));
    expect((await http.post(small, { ...json, 'content-encoding': 'gzip' })).status).toBe(200);
    expect((await http.post('{}', { ...json, 'content-encoding': 'rot13' })).status).toBe(415);
  });
});
