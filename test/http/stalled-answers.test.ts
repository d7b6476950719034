import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { stream } from '../../src/http/answer.ts';
import { defineRoute } from '../../src/http/route.ts';
import { held } from './held.ts';
import { startTestHttp, type TestHttp } from './start.ts';

let http: TestHttp;
const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  return http.close();
});

const mebibyte = 1_048_576;
const page = 'x'.repeat(65_536);

/** Endless pages, as fast as the client reads. */
const pages = defineRoute({
  method: 'get',
  path: '/pages',
  summary: 'Pages',
  tag: 'Test',
  auth: 'account',
  response: z.string(),
  errors: [],
  answerBytes: mebibyte,
  handler: async () => {
    const endless = function* () {
      for (;;) yield page;
    };
    return stream('text/plain', Readable.from(endless()));
  },
});

/** The answer to account 5 while other accounts use all of the memory. */
async function givenReaders(open: (socket: Socket) => void) {
  const { route, underWay } = held(1_024);
  http = await startTestHttp({
    routes: [pages, route],
    requestBytes: 4 * mebibyte,
    authenticate: async (token) => ({
      accountId: Number(token),
      accountUuid: token,
      sessionId: token,
    }),
  });
  for (const account of [1, 2, 3, 4]) {
    const socket = connect(http.port, '127.0.0.1').on('error', () => undefined);
    sockets.push(socket);
    socket.write(`GET /pages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${account}\r\n\r\n`);
    await once(socket, 'readable');
    open(socket);
  }
  const headers = { authorization: 'Bearer 5' };
  return { answer: http.fetch('/held', { method: 'POST', headers }), underWay };
}

test('answers that clients do not read are ended while others wait for their memory', async () => {
  const { answer, underWay } = await givenReaders((socket) => socket.pause());
  void answer.then(() => underWay.push(() => undefined));
  await expect.poll(() => underWay.length, { timeout: 60_000 }).toBe(1);
  underWay.shift()?.();
  expect((await answer).status).toBe(200);
});

test('answers that clients read slowly are not cut off', async () => {
  const { answer } = await givenReaders((socket) => {
    void (async () => {
      for (; !socket.destroyed; await sleep(20)) socket.read();
    })();
  });
  expect((await answer).status).toBe(503);
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([false, false, false, false]);
});
