import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineRoute } from '../../src/http/route.ts';
import { startTestHttp, type TestHttp } from './start.ts';

const common = { method: 'post', summary: 'x', tag: 'x', auth: 'none', errors: [] } as const;
/** For each request under way, what was read of it. */
const read: string[] = [];

const routes = [
  defineRoute({
    ...common,
    path: '/streamed',
    takes: { 'text/csv': 'a' },
    response: z.object({ text: z.string() }),
    handler: async ({ request }) => {
      const at = read.push('') - 1;
      for await (const chunk of request.openBody().chunks) read[at] += chunk.toString();
      return { text: read[at] ?? '' };
    },
  }),
  defineRoute({
    ...common,
    path: '/whole',
    body: z.unknown(),
    response: z.unknown(),
    handler: async ({ body }) => body,
  }),
  defineRoute({
    ...common,
    path: '/unread',
    response: z.object({}),
    handler: async () => ({}),
  }),
];

/** The server of most tests waits for bodies as long as a busy machine may take, the hasty one does not. */
let http: TestHttp;
let hasty: TestHttp;
beforeAll(async () => {
  http = await startTestHttp({ requestTimeoutMs: 300, bodyStallMs: 60_000, routes });
  hasty = await startTestHttp({ requestTimeoutMs: 300, bodyStallMs: 900, routes });
});
afterAll(async () => {
  await http.close();
  await hasty.close();
});

type Client = { socket: Socket; text: () => string; closed: Promise<unknown> };

function open(path: string, type: string, more = '', { port } = http): Client {
  const socket = connect(port, '127.0.0.1');
  let answer = '';
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString()));
  socket.on('error', () => undefined);
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: ${type}\r\n${more}transfer-encoding: chunked\r\n\r\n`,
  );
  return { socket, text: () => answer, closed: once(socket, 'close') };
}

const piece = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
const last = '0\r\n\r\n';

test('a body may take longer than other requests for as long as it keeps arriving', async () => {
  const { socket, text } = open('/streamed', 'text/csv');
  const at = read.length;
  const startedMs = performance.now();
  for (let n = 0; performance.now() - startedMs < 700; n += 1) {
    socket.write(piece(`${n};`));
    await expect.poll(() => read[at] ?? '', { interval: 5 }).toContain(`${n};`);
  }
  socket.write(last);
  await expect.poll(text).toContain('HTTP/1.1 200');
  expect(text()).toContain(`"text":"${read[at]}"`);
  socket.destroy();
});

test('if nothing of it arrives for too long, it ends, and its connection: 408', async () => {
  const { socket, text, closed } = open('/streamed', 'text/csv', '', hasty);
  socket.write(piece('a'));
  await closed;
  expect(text()).toMatch(/^HTTP\/1\.1 408 .*"detail":"No part of the body arrived for 0\.9 s\."/s);
});

test.each(['/whole', '/unread'])('all other requests have the usual time: %s', async (path) => {
  const { socket, text, closed } = open(path, 'application/json');
  socket.write(piece('['));
  await closed;
  expect(text()).toMatch(/HTTP\/1\.1 408 /);
});

test('gzip that expands more than a hundredfold is 400, and is not read to its end', async () => {
  const at = read.length;
  const { socket, text } = open('/streamed', 'text/csv', 'content-encoding: gzip\r\n');
  const bytes = gzipSync(Buffer.alloc(100 * 2 ** 20, '\n'));
  socket.write(`${bytes.length.toString(16)}\r\n`);
  socket.write(bytes);
  socket.write(`\r\n${last}`);
  await expect.poll(text).toMatch(/^HTTP\/1\.1 400 .*expands more than 100-fold/s);
  expect(read[at]?.length).toBeLessThan(30 * 2 ** 20);
  socket.destroy();
});

test('the reader learns of a body that breaks off, compressed or not', async () => {
  for (const [more, bytes] of [
    ['', Buffer.from('abc')],
    ['content-encoding: gzip\r\n', gzipSync('a'.repeat(100_000)).subarray(0, 60)],
  ] as const) {
    const [before, at] = [http.lines.length, read.length];
    const { socket, closed } = open('/streamed', 'text/csv', more);
    socket.write(`${bytes.length.toString(16)}\r\n`);
    socket.write(bytes);
    // The compressed one may not have produced anything yet.
    await expect.poll(() => read.length).toBeGreaterThan(at);
    socket.destroy();
    await closed;
    const answered = () => http.lines.slice(before).filter((line) => line.includes('"status":400'));
    await expect.poll(answered).toHaveLength(1);
  }
});

test.each([
  [{ 'content-type': 'text/plain' }, 415],
  [{ 'content-type': 'text/csv; charset=utf-16' }, 415],
  [{ 'content-type': 'text/csv', 'content-encoding': 'deflate' }, 415],
  [{ 'content-type': 'text/csv', 'content-encoding': 'gzip' }, 400],
  [{ 'content-type': 'text/csv; charset=UTF-8', 'content-encoding': 'identity' }, 200],
])('%j is answered %i', async (headers, status) => {
  const answer = await http.fetch('/streamed', {
    method: 'POST',
    body: 'abc',
    headers: headers as never,
  });
  expect(answer.status).toBe(status);
});
