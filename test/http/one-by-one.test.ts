import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { defineRoute } from '../../src/http/route.ts';
import { startTestHttp, type TestHttp } from './start.ts';

let server: TestHttp;
let atOnce = 0;
let most = 0;
let asked = 0;
afterEach(() => server.close());

const start = async () => {
  atOnce = most = asked = 0;
  const route = defineRoute({
    method: 'get',
    path: '/slow/{n}',
    summary: 'Answers after others had their turn',
    tag: 'Test',
    auth: 'none',
    errors: [],
    params: z.object({ n: z.string() }),
    response: z.object({ n: z.string() }),
    handler: async ({ params }) => {
      asked += 1;
      atOnce += 1;
      most = Math.max(most, atOnce);
      await new Promise(setImmediate);
      atOnce -= 1;
      return { n: params.n };
    },
  });
  server = await startTestHttp({ routes: [route] });
};

const requests = (count: number) =>
  Array.from({ length: count }, (_, n) => `GET /slow/${n} HTTP/1.1\r\nHost: x\r\n\r\n`).join('');

test('requests that are written at once are answered one after the other, in their order', async () => {
  await start();
  const socket = connect({ host: '127.0.0.1', port: server.port });
  let text = '';
  const all = new Promise<void>((resolve) => {
    socket.on('data', (chunk) => {
      text += String(chunk);
      if (text.includes('{"n":"29"}')) resolve();
    });
  });
  socket.write(requests(30));
  await all;
  const answered = [...text.matchAll(/\{"n":"(\d+)"\}/g)].map(([, n]) => Number(n));
  expect(answered).toEqual(Array.from({ length: 30 }, (_, n) => n));
  expect(most).toBe(1);
  // The connection goes on as before.
  const next = once(socket, 'data');
  socket.write('GET /slow/next HTTP/1.1\r\nHost: x\r\n\r\n');
  expect(String((await next)[0])).toContain('{"n":"next"}');
  socket.destroy();
});

test('hundreds at once close the connection, and cost one request', async () => {
  await start();
  const socket = connect({ host: '127.0.0.1', port: server.port });
  socket.on('error', () => {});
  const closed = once(socket.resume(), 'close');
  socket.write(requests(500));
  await closed.catch(() => undefined);
  expect(most).toBe(1);
  expect(asked).toBeLessThanOrEqual(2);
  expect((await server.fetch('/slow/7')).body).toEqual({ n: '7' });
});
