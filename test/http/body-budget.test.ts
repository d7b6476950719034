import { connect } from 'node:net';
import { once } from 'node:events';
import { afterEach, expect, test } from 'vitest';
import { held, quick } from './held.ts';
import { startTestHttp, type TestHttp } from './start.ts';

let http: TestHttp;
afterEach(() => http.close());

const mebibyte = 1_048_576;
const authorization = 'Bearer good';

/** Each token belongs to another account. */
const authenticate = async (token: string) => {
  return { accountId: Number(token), accountUuid: token, sessionId: token };
};

/** Connections of four accounts, each with the head of a request whose body does not arrive. */
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

// With so much memory that reserving the missing bodies would leave too little.
test.each([
  ['small', { bytes: 16_384, perAccount: 20, requestBytes: 9_487_184 }],
  ['large', { bytes: 1_000_000, perAccount: 5, requestBytes: 8_300_000 }],
])('%s bodies that many accounts do not send leave room for others', async (_, of) => {
  const { route, underWay } = held(131_072);
  http = await startTestHttp({
    routes: [route, quick],
    authenticate,
    requestBytes: of.requestBytes,
  });
  const slow = holdBodies(of.bytes, of.perAccount);
  await Promise.all(slow.map((socket) => once(socket, 'connect')));
  // Their headers were read.
  expect((await http.fetch('/quick')).status).toBe(200);
  const answer = http.fetch('/held', { method: 'POST', ...asAccount(5) });
  void answer.then(() => underWay.push(() => undefined));
  await expect.poll(() => underWay.length, { timeout: 60_000 }).toBe(1);
  underWay.shift()?.();
  expect((await answer).status).toBe(200);
  for (const socket of slow) socket.destroy();
});

test('a large body that does not arrive is given up for one that has', async () => {
  const { route, underWay } = held(1_024);
  http = await startTestHttp({ routes: [route, quick], authenticate, requestBytes: 8 * mebibyte });
  const [slow, ...others] = holdBodies(1_000_000, 1);
  for (const socket of others) socket.destroy();
  const closed = slow && once(slow, 'close');
  expect((await http.fetch('/quick')).status).toBe(200);
  const body = JSON.stringify('x'.repeat(900_000));
  const headers = { ...asAccount(5).headers, 'content-type': 'application/json' };
  const answer = http.fetch('/held', { method: 'POST', headers, body });
  await expect.poll(() => underWay.length, { timeout: 60_000 }).toBe(1);
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

test.each([
  ['small', 100],
  ['larger', 20_000],
])('a client that leaves before its %s body has come keeps no room', async (_, length) => {
  const { route, underWay } = held(mebibyte);
  http = await startTestHttp({ routes: [route], requestBytes: mebibyte });
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

test('a client that leaves during its authentication keeps no memory reserved', async () => {
  const { route, underWay } = held(mebibyte);
  const asked: (() => void)[] = [];
  http = await startTestHttp({
    routes: [route],
    requestBytes: mebibyte,
    authenticate: async (token) => {
      if (token === 'slow') await new Promise<void>((resolve) => asked.push(resolve));
      return { accountId: 1, accountUuid: 'u', sessionId: 's' };
    },
  });
  // Reset the connection: a client that only half-closes would still want its answer.
  const leaving = connect(http.port, '127.0.0.1');
  leaving.write(
    'POST /held HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer slow\r\nContent-Length: 0\r\n\r\n',
  );
  await expect.poll(() => asked.length).toBe(1);
  leaving.resetAndDestroy();
  await once(leaving, 'close');
  // The server sees the end of this connection before the next request.
  expect((await http.fetch('/nothing')).status).toBe(404);
  asked[0]?.();
  const next = http.fetch('/held', { method: 'POST', headers: { authorization } });
  await expect.poll(() => underWay.length).toBe(1);
  underWay.shift()?.();
  expect((await next).status).toBe(200);
  expect(underWay).toHaveLength(0);
});
