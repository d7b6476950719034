import { connect } from 'node:net';
import { once } from 'node:events';
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { DomainError } from '../../src/errors.ts';
import { probeRoutes } from '../../src/http/health.ts';
import { defineRoute } from '../../src/http/route.ts';
import { held, quick } from './held.ts';
import { startTestHttp, type TestHttp } from './start.ts';

let http: TestHttp;
afterEach(() => http.close());

const mebibyte = 1_048_576;
const authorization = 'Bearer good';

test('an account may use a quarter of the memory, others use the rest; waiting accounts take turns', async () => {
  const { route, underWay } = held(mebibyte);
  http = await startTestHttp({ routes: [route, quick], requestBytes: 4 * mebibyte });
  const post = () => http.fetch('/held', { method: 'POST', headers: { authorization } });
  const answers = [post(), post()];
  await expect.poll(() => underWay.length).toBe(1);
  expect((await http.fetch('/quick')).status).toBe(200);
  expect(underWay).toHaveLength(1);
  underWay.shift()?.();
  await expect.poll(() => underWay.length).toBe(1);
  underWay.shift()?.();
  for (const { status } of await Promise.all(answers)) expect(status).toBe(200);
});

test('answers that were small are expected to be small, and run at once', async () => {
  const { route, underWay } = held(mebibyte);
  http = await startTestHttp({ routes: [route], requestBytes: 4 * mebibyte });
  const post = () => http.fetch('/held', { method: 'POST', headers: { authorization } });
  const first = post();
  await expect.poll(() => underWay.length).toBe(1);
  underWay.shift()?.();
  expect((await first).status).toBe(200);
  const answers = Array.from({ length: 10 }, post);
  await expect.poll(() => underWay.length).toBe(10);
  for (const answer of underWay) answer();
  for (const { status } of await Promise.all(answers)) expect(status).toBe(200);
});

test('a request that waits too long is told to try again later, and gives up its place', async () => {
  const { route, underWay } = held(mebibyte);
  http = await startTestHttp({ routes: [route], requestBytes: mebibyte });
  const post = () => http.fetch('/held', { method: 'POST', headers: { authorization } });
  const first = post();
  await expect.poll(() => underWay.length).toBe(1);
  const late = await post();
  expect(late.status).toBe(503);
  expect(Number(late.headers.get('retry-after'))).toBe(5);
  expect(late.body).toMatchObject({ type: 'urn:sensorium:error:unavailable' });
  expect(http.lines.join('')).not.toContain('request.unavailable');
  underWay.shift()?.();
  await first;
  const next = post();
  await expect.poll(() => underWay.length).toBe(1);
  underWay.shift()?.();
  expect((await next).status).toBe(200);
});

test('bodies that are still being sent occupy memory until their connection is closed', async () => {
  const { route, underWay } = held(1_024);
  http = await startTestHttp({ routes: [route, quick], requestBytes: 15 * mebibyte });
  const head = [
    'POST /held HTTP/1.1',
    'Host: x',
    'Content-Type: application/json',
    `Authorization: ${authorization}`,
    'Content-Length: 1000000',
  ];
  const slow = connect(http.port, '127.0.0.1');
  slow.on('error', () => undefined);
  await once(slow, 'connect');
  slow.write(`${head.join('\r\n')}\r\n\r\n{`);
  // Their headers were read before this request was.
  expect((await http.fetch('/quick')).status).toBe(200);
  const answer = http.fetch('/held', { method: 'POST', headers: { authorization } });
  expect((await http.fetch('/quick')).status).toBe(200);
  expect(underWay).toHaveLength(0);
  slow.destroy();
  await expect.poll(() => underWay.length).toBe(1);
  underWay.shift()?.();
  expect((await answer).status).toBe(200);
});

test('a service short of memory answers probes, and tells other clients to try again later', async () => {
  let isShort = true;
  const { route } = held(0);
  const listUnready = async () => (isShort ? ['memory'] : []);
  const routes = [route, quick, ...probeRoutes({ listUnready })];
  http = await startTestHttp({ routes, isShort: () => isShort });
  const refused = await http.fetch('/quick');
  expect(refused.status).toBe(503);
  expect(refused.headers.get('retry-after')).toBe('5');
  const body = JSON.stringify({ text: 'x'.repeat(1_000) });
  const headers = { authorization, 'content-type': 'application/json' };
  expect((await http.fetch('/held', { method: 'POST', headers, body })).status).toBe(503);
  expect((await http.fetch('/livez')).status).toBe(200);
  expect((await http.fetch('/readyz')).body['detail']).toBe('Not ready: memory.');
  isShort = false;
  expect((await http.fetch('/quick')).status).toBe(200);
});

test('requests that fail release their memory', async () => {
  const fails = defineRoute({
    method: 'get',
    path: '/fails',
    summary: 'Fails',
    tag: 'Test',
    auth: 'account',
    response: z.object({}),
    errors: [404],
    answerBytes: mebibyte,
    handler: async () => {
      throw new DomainError('not-found', 'Nothing.');
    },
  });
  http = await startTestHttp({ routes: [fails], requestBytes: mebibyte });
  for (let n = 0; n < 5; n += 1)
    expect((await http.fetch('/fails', { headers: { authorization } })).status).toBe(404);
});
