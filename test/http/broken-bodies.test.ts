import { once } from 'node:events';
import { connect } from 'node:net';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { id, json, startThings, type Things } from './things.ts';

let http: Things;
beforeAll(async () => {
  http = await startThings();
});
afterAll(() => http.close());

const start = (...headers: string[]) =>
  [
    `POST /things/${id} HTTP/1.1`,
    'Host: x',
    'Authorization: Bearer good',
    'Content-Type: application/json',
    ...headers,
    '',
    '',
  ].join('\r\n');

/** Sends, and returns everything that comes back until the other side closes. */
async function untilClosed(parts: (string | Uint8Array)[]): Promise<string> {
  let text = '';
  const socket = connect(http.port, '127.0.0.1');
  socket.on('data', (chunk) => (text += String(chunk))).on('error', () => {});
  for (const part of parts) socket.write(part);
  await once(socket, 'close');
  return text;
}
const statusesOf = (text: string) =>
  [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
const next = 'GET /address HTTP/1.1\r\nHost: x\r\n\r\n';
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

describe('after an error while a body is read the connection is closed', () => {
  test('chunked and larger than 1 MiB: 413, and nothing after it is taken for a request', async () => {
    const large = chunk('x'.repeat(600_000));
    const text = await untilClosed([
      start('Transfer-Encoding: chunked'),
      large,
      large,
      '0\r\n\r\n',
      next,
    ]);
    expect(statusesOf(text)).toEqual(['413']);
    expect(text).toMatch(/^Connection: close\r$/im);
  });

  test('announced as larger than 1 MiB: 413 before it has arrived', async () => {
    const text = await untilClosed([start('Content-Length: 2000000'), '{"name":']);
    expect(statusesOf(text)).toEqual(['413']);
  });

  test.each([
    ['gzip', gzipSync('{"name":"x"}').subarray(0, 15)],
    ['gzip', Buffer.from('no gzip at all')],
    ['br', Buffer.from('no brotli at all')],
    ['br', brotliCompressSync('{"name":"x"}').subarray(0, 8)],
    ['deflate', Buffer.from('nor deflate')],
  ])('malformed %s: 400', async (encoding, bytes) => {
    const head = start(`Content-Encoding: ${encoding}`, `Content-Length: ${bytes.length}`);
    const text = await untilClosed([head, bytes, next]);
    expect(statusesOf(text)).toEqual(['400']);
    expect(text).toContain(`The body is not ${encoding}.`);
    expect(text).toContain('urn:sensorium:error:invalid-input');
  });

  test('compressed, larger than 1 MiB when decompressed: 413', async () => {
    const bytes = gzipSync('x'.repeat(3_000_000));
    const head = start('Content-Encoding: gzip', `Content-Length: ${bytes.length}`);
    expect(statusesOf(await untilClosed([head, bytes, next]))).toEqual(['413']);
  });

  test('refused before it was read: its rest is not taken for a request either', async () => {
    const head = `POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: ${next.length + 5}\r\n\r\n`;
    const last = next.replace('Host: x\r\n', 'Host: x\r\nConnection: close\r\n');
    expect(statusesOf(await untilClosed([head, next, 'rest!', last]))).toEqual(['404', '200']);
    const unfinished = `POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n${next}`;
    expect(statusesOf(await untilClosed([unfinished]))).toEqual(['404']);
  });

  test('a client that leaves in the middle of a compressed body leaves no request behind', async () => {
    const before = http.lines.filter((line) => line.includes('"status":400')).length;
    const socket = connect(http.port, '127.0.0.1');
    const half = gzipSync('{"name":"x"}').subarray(0, 12);
    socket.write(start('Content-Encoding: gzip', 'Content-Length: 500'));
    socket.write(half, () => socket.destroy());
    await vi.waitFor(
      () =>
        expect(http.lines.filter((line) => line.includes('"status":400')).length).toBe(before + 1),
      { timeout: 60_000 },
    );
  });
});

test('a body that is invalid but completely read leaves the connection open', async () => {
  const body = '{"name":1}';
  const one = start(`Content-Length: ${body.length}`) + body;
  const last = 'GET /address HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
  expect(statusesOf(await untilClosed([one, last]))).toEqual(['400', '200']);
});

describe('a body whose sender has not logged in', () => {
  const limit = 65_536;
  const bodyOf = (bytes: number) => JSON.stringify({ text: 'x'.repeat(bytes - 11) });
  const head = (path: string, ...headers: string[]) =>
    ['POST ' + path + ' HTTP/1.1', 'Host: x', 'Content-Type: application/json', ...headers]
      .map((line) => `${line}\r\n`)
      .join('') + '\r\n';
  const token = 'Authorization: Bearer anything';

  test.each(['/enter', '/renew'])(
    '%s accepts 64 KiB, and names that limit for more',
    async (path) => {
      const all = (body: string) =>
        http.fetch(path, {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization: 'Bearer anything' },
          body,
        });
      expect((await all(bodyOf(limit))).status).toBe(200);
      const { status, body } = await all(bodyOf(limit + 1));
      expect(status).toBe(413);
      expect(body['detail']).toBe(
        'The body has more than 65536 bytes, the maximum without a login.',
      );
    },
  );

  test.each(['/enter', '/renew'])(
    '%s refuses an announced length before the body arrives',
    async (path) => {
      const text = await untilClosed([head(path, token, `Content-Length: ${limit + 1}`), '{']);
      expect(statusesOf(text)).toEqual(['413']);
      expect(text).toMatch(/^Connection: close\r$/im);
    },
  );

  test.each([
    ['in chunks', ['Transfer-Encoding: chunked'], chunk(bodyOf(limit + 1)) + '0\r\n\r\n'],
    ['packed', ['Content-Encoding: gzip'], gzipSync(bodyOf(limit + 1))],
  ])('%s it is read no further', async (_, headers, body) => {
    const announced = headers[0]?.startsWith('Content') ? [`Content-Length: ${body.length}`] : [];
    const text = await untilClosed([head('/enter', ...headers, ...announced), body, next]);
    expect(statusesOf(text)).toEqual(['413']);
  });

  test('is not read if the route decides whom to admit and did not admit the caller', async () => {
    const headers = (secret: string) =>
      head('/hook', `X-Secret: ${secret}`, 'Content-Length: 900000');
    expect(statusesOf(await untilClosed([headers('wrong'), '{']))).toEqual(['401']);
    const text = await untilClosed([
      head('/hook', 'X-Secret: right', 'Content-Length: 900000', 'Connection: close'),
      bodyOf(900_000),
    ]);
    expect(statusesOf(text)).toEqual(['200']);
  });
});

describe('a request whose length is ambiguous is refused, and its connection closed', () => {
  test.each([
    ['two lengths', ['Content-Length: 2', 'Content-Length: 30'], '{}'],
    ['two lengths in one', ['Content-Length: 2, 30'], '{}'],
    ['the same length twice', ['Content-Length: 2', 'Content-Length: 2'], '{}'],
    ['a length and chunks', ['Content-Length: 4', 'Transfer-Encoding: chunked'], '0\r\n\r\n'],
    ['chunks and a length', ['Transfer-Encoding: chunked', 'Content-Length: 4'], '0\r\n\r\n'],
    ['chunks that are not last', ['Transfer-Encoding: chunked, identity'], '0\r\n\r\n'],
    ['chunks in disguise', ['Transfer-Encoding: xchunked'], '0\r\n\r\n'],
    ['a space before the colon', ['Transfer-Encoding : chunked'], '0\r\n\r\n'],
    ['a length with a sign', ['Content-Length: +2'], '{}'],
    ['a length in hexadecimal', ['Content-Length: 0x2'], '{}'],
    ['a folded header', ['X: a', ' Content-Length: 2'], '{}'],
  ])('%s', async (_name, headers, body) => {
    expect(statusesOf(await untilClosed([start(...headers), body, next]))).toEqual(['400']);
  });
});

describe('a body with many errors', () => {
  const tags = (count: number) =>
    JSON.stringify({ name: 1, tags: Array.from({ length: count }, () => ({ 'a/b~c': 'x' })) });
  test.each([5, 99, 100, 5_000])('%i and one: at most a hundred are listed', async (count) => {
    const { status, body } = await http.post(tags(count), json);
    const { errors, detail } = body as { errors: { path: string }[]; detail: string };
    expect(status).toBe(400);
    expect(errors).toHaveLength(Math.min(100, count + 1));
    expect(errors[0]?.path).toBe('/name');
    expect(errors[1]?.path).toBe('/tags/0/a~1b~0c');
    expect(detail.includes('first 100')).toBe(count >= 99);
  });

  test('the maximum of valid members is accepted', async () => {
    const all = Array.from({ length: 9_998 }, () => ({ 'a/b~c': 1 }));
    const sound = JSON.stringify({ name: 'x', tags: all });
    const { status, body } = await http.post(sound, json);
    expect(status).toBe(200);
    expect((body as { body: { tags: unknown[] } }).body.tags).toHaveLength(9_998);
  });
});
