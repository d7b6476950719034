import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import Koa from 'koa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createBodyReader } from '../../src/http/body.ts';

let server: Server;
let url: string;
beforeAll(async () => {
  const readBody = createBodyReader(1_000);
  const app = new Koa();
  app.use(async (ctx) => {
    try {
      ctx.body = { read: (await readBody(ctx)) ?? 'nothing' };
    } catch (error) {
      const { status, code } = error as { status?: number; code?: string };
      ctx.status = 200;
      ctx.body = { refused: status ?? code };
    }
  });
  const handle = app.callback();
  server = createServer((request, response) => void handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());

async function send(
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
): Promise<unknown> {
  const sent = { 'Content-Type': 'application/json', ...headers };
  return (await fetch(url, { method: 'POST', body, headers: sent })).json();
}

const large = JSON.stringify({ x: 'x'.repeat(2_000) });

test.each([
  ['JSON', 'application/json'],
  ['a JSON subtype', 'application/merge-patch+json'],
])('%s is passed on as text, and parsed here', async (_, type) => {
  const number = '{"n":12345678901234567890}';
  expect(await send(number, { 'Content-Type': type })).toEqual({
    read: JSON.parse(number) as unknown,
  });
});

test('an empty body is none', async () => {
  expect(await send('')).toEqual({ read: 'nothing' });
});

test.each([
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['br', brotliCompressSync],
] as const)('%s is unpacked, and counted unpacked', async (encoding, pack) => {
  const headers = { 'Content-Encoding': encoding };
  expect(await send(new Uint8Array(pack('{"a":1}')), headers)).toEqual({ read: { a: 1 } });
  expect(await send(new Uint8Array(pack(large)), headers)).toEqual({ refused: 413 });
});

test.each(['gzip', 'deflate', 'br'])(
  "bytes that are not %s are recognised by zlib's code",
  async (encoding) => {
    expect(await send('this is not packed', { 'Content-Encoding': encoding })).toEqual({
      refused: 'invalid-input',
    });
  },
);

test('too much is refused with its status, and so is an unknown encoding', async () => {
  expect(await send(large)).toEqual({ refused: 413 });
  expect(await send('{}', { 'Content-Encoding': 'zip' })).toEqual({ refused: 415 });
});
