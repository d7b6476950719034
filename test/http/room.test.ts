import { connect } from 'node:net';
import { once } from 'node:events';
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { DomainError } from '../../src/errors.ts';
import { probeRoutes } from '../../src/http/probes.ts';
import { defineRoute, type Route } from '../../src/http/route.ts';
import { startTestHttp, type TestHttp } from './start.ts';

let http: TestHttp;
afterEach(() => http.close());

const mebibyte = 1_048_576;
const authorization = 'Bearer good';

/** A route that answers when it is told to, and says how many of its requests are under way. */
function held(room: number) {
  const underWay: (() => void)[] = [];
  const route: Route = defineRoute({
    method: 'post',
    path: '/held',
    summary: 'Held',
    tag: 'Test',
    auth: 'account',
    body: z.unknown(),
    response: z.object({}),
    errors: [],
    room,
    handler: async () => {
      await new Promise<void>((resolve) => underWay.push(resolve));
      return {};
    },
  });
  return { route, underWay };
}

const quick = defineRoute({
  method: 'get',
  path: '/quick',
  summary: 'Quick',
  tag: 'Test',
  auth: 'none',
  response: z.object({}),
  errors: [],
  handler: async () => ({}),
});

test('an account has a quarter of the room, the others have the rest; what waits has its turn', async () => {
  const { route, underWay } = held(mebibyte);
  http = await startTestHttp({ routes: [route, quick], roomBytes: 4 * mebibyte });
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

test('what turned out to be small is expected to be small, and runs at once', async () => {
  const { route, underWay } = held(mebibyte);
  http = await startTestHttp({ routes: [route], roomBytes: 4 * mebibyte });
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

test('what waits too long is told to try again later, and leaves its place', async () => {
  const { route, underWay } = held(mebibyte);
  http = await startTestHttp({ routes: [route], roomBytes: mebibyte });
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

test('bodies that are still being sent take room, until their connection is closed', async () => {
  const { route, underWay } = held(1_024);
  http = await startTestHttp({ routes: [route, quick], roomBytes: 15 * mebibyte });
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
  // Its headers were read: those after it are, too.
  expect((await http.fetch('/quick')).status).toBe(200);
  const answer = http.fetch('/held', { method: 'POST', headers: { authorization } });
  expect((await http.fetch('/quick')).status).toBe(200);
  expect(underWay).toHaveLength(0);
  slow.destroy();
  await expect.poll(() => underWay.length).toBe(1);
  underWay.shift()?.();
  expect((await answer).status).toBe(200);
});

/** Each token is another account's. */
const authenticate = async (token: string) => {
  return { accountId: Number(token), accountUuid: token, sessionId: token };
};

/** Connections of four accounts, each with the head of a request whose body does not come. */
function holdBodies(bytes: number, perAccount: number) {
  return Array.from({ length: 4 * perAccount }, (_, n) => {
    const slow = connect(http.port, '127.0.0.1').on('error', () => undefined);
    slow.write(
      'POST /held HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n' +
        `Authorization: Bearer ${1 + (n % 4)}\r\nContent-Length: ${bytes}\r\n\r\n{`,
    );
    return slow.resume();
  });
}

const asAccount = (id: number) => ({ headers: { authorization: `Bearer ${id}` } });

// So much room that what they do not send would take all but too little of it.
test.each([
  ['small', { bytes: 16_384, perAccount: 20, roomBytes: 9_487_184 }],
  ['large', { bytes: 1_000_000, perAccount: 5, roomBytes: 8_300_000 }],
])('%s bodies that many accounts do not send leave room for others', async (_, of) => {
  const { route, underWay } = held(131_072);
  http = await startTestHttp({ routes: [route, quick], authenticate, roomBytes: of.roomBytes });
  const slow = holdBodies(of.bytes, of.perAccount);
  await Promise.all(slow.map((socket) => once(socket, 'connect')));
  // Their headers were read.
  expect((await http.fetch('/quick')).status).toBe(200);
  const answer = http.fetch('/held', { method: 'POST', ...asAccount(5) });
  void answer.then(() => underWay.push(() => undefined));
  await expect.poll(() => underWay.length, { timeout: 10_000 }).toBe(1);
  underWay.shift()?.();
  expect((await answer).status).toBe(200);
  for (const socket of slow) socket.destroy();
});

test('a large body that does not come makes way for one that has', async () => {
  const { route, underWay } = held(1_024);
  http = await startTestHttp({ routes: [route, quick], authenticate, roomBytes: 8 * mebibyte });
  const [slow, ...others] = holdBodies(1_000_000, 1);
  for (const socket of others) socket.destroy();
  const closed = slow && once(slow, 'close');
  expect((await http.fetch('/quick')).status).toBe(200);
  const body = JSON.stringify('x'.repeat(900_000));
  const headers = { ...asAccount(5).headers, 'content-type': 'application/json' };
  const answer = http.fetch('/held', { method: 'POST', headers, body });
  await expect.poll(() => underWay.length, { timeout: 5_000 }).toBe(1);
  await closed;
  underWay.shift()?.();
  expect((await answer).status).toBe(200);
});

test('a small body whose client leaves is given up', async () => {
  const { route, underWay } = held(1_024);
  http = await startTestHttp({ routes: [route, quick], authenticate });
  const slow = holdBodies(1_000, 1);
  expect((await http.fetch('/quick')).status).toBe(200);
  for (const socket of slow) socket.destroy();
  await expect
    .poll(() => http.lines.filter((line) => line.includes('"request.done"')).length)
    .toBe(5);
  expect(underWay).toHaveLength(0);
});

test('a service short of memory answers probes, and tells others to try again later', async () => {
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

test('room is given back by requests that fail', async () => {
  const fails = defineRoute({
    method: 'get',
    path: '/fails',
    summary: 'Fails',
    tag: 'Test',
    auth: 'account',
    response: z.object({}),
    errors: [404],
    room: mebibyte,
    handler: async () => {
      throw new DomainError('not-found', 'Nothing.');
    },
  });
  http = await startTestHttp({ routes: [fails], roomBytes: mebibyte });
  for (let n = 0; n < 5; n += 1)
    expect((await http.fetch('/fails', { headers: { authorization } })).status).toBe(404);
});

test.each([
  ['small', 100],
  ['larger', 20_000],
])('a client that leaves before its %s body has come keeps no room', async (_, length) => {
  const { route, underWay } = held(mebibyte);
  http = await startTestHttp({ routes: [route], roomBytes: mebibyte });
  const leaving = connect(http.port, '127.0.0.1');
  leaving.on('error', () => undefined);
  await once(leaving, 'connect');
  const head = ['POST /held HTTP/1.1', 'Host: x', `Authorization: ${authorization}`];
  const type = ['Content-Type: application/json', `Content-Length: ${length}`];
  leaving.write(`${[...head, ...type].join('\r\n')}\r\n\r\n{`);
  expect((await http.fetch('/nothing')).status).toBe(404);
  leaving.destroy();
  expect((await http.fetch('/nothing')).status).toBe(404);
  const next = http.fetch('/held', { method: 'POST', headers: { authorization } });
  await expect.poll(() => underWay.length).toBe(1);
  underWay.shift()?.();
  expect((await next).status).toBe(200);
});

test('a client that leaves while it is found out who it is keeps no room', async () => {
  const { route, underWay } = held(mebibyte);
  const asked: (() => void)[] = [];
  http = await startTestHttp({
    routes: [route],
    roomBytes: mebibyte,
    authenticate: async (token) => {
      if (token === 'slow') await new Promise<void>((resolve) => asked.push(resolve));
      return { accountId: 1, accountUuid: 'u', sessionId: 's' };
    },
  });
  const leaving = new AbortController();
  const init = { method: 'POST', headers: { authorization: 'Bearer slow' } };
  const left = http.fetch('/held', { ...init, signal: leaving.signal }).catch(() => 'left');
  await expect.poll(() => asked.length).toBe(1);
  leaving.abort();
  expect(await left).toBe('left');
  // Its connection's end is seen before what is asked next.
  expect((await http.fetch('/nothing')).status).toBe(404);
  asked[0]?.();
  const next = http.fetch('/held', { method: 'POST', headers: { authorization } });
  await expect.poll(() => underWay.length).toBe(1);
  underWay.shift()?.();
  expect((await next).status).toBe(200);
  expect(underWay).toHaveLength(0);
});
