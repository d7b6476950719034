import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { channel } from 'node:diagnostics_channel';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineRoute } from '../../src/http/route.ts';
import type { HttpOptions } from '../../src/http/server.ts';
import { startTestHttp, type TestHttp } from './start.ts';

let server: TestHttp;
let handled = 0;
/** Requests that Node's parser has created, and those that were answered. */
let parsed = 0;
let finished = 0;
let mostAtOnce = 0;
const onStart = () => {
  parsed += 1;
  mostAtOnce = Math.max(mostAtOnce, parsed - finished);
};
const onFinish = () => void (finished += 1);
const started = channel('http.server.request.start');
const ended = channel('http.server.response.finish');
beforeEach(() => {
  waiting = [];
  handled = parsed = finished = mostAtOnce = 0;
  started.subscribe(onStart);
  ended.subscribe(onFinish);
});
afterEach(async () => {
  started.unsubscribe(onStart);
  ended.unsubscribe(onFinish);
  await server.close();
});

const slow = defineRoute({
  method: 'get',
  path: '/slow/{n}',
  summary: 'Answers after others had their turn',
  tag: 'Test',
  auth: 'none',
  errors: [],
  params: z.object({ n: z.string() }),
  response: z.object({ n: z.string() }),
  handler: async ({ params }) => {
    handled += 1;
    await new Promise(setImmediate);
    return { n: params.n };
  },
});
let waiting: (() => void)[] = [];
const wait = defineRoute({
  method: 'get',
  path: '/wait',
  summary: 'Answers when it is told to',
  tag: 'Test',
  auth: 'none',
  errors: [],
  response: z.object({}),
  handler: async () => {
    await new Promise<void>((resolve) => void waiting.push(resolve));
    return {};
  },
});
const large = defineRoute({
  method: 'get',
  path: '/large',
  summary: 'Answers with much',
  tag: 'Test',
  auth: 'none',
  errors: [],
  response: z.object({ text: z.string() }),
  handler: async () => {
    handled += 1;
    return { text: 'x'.repeat(1_000_000) };
  },
});
const echo = defineRoute({
  method: 'post',
  path: '/echo',
  summary: 'Gives the length of what it is sent',
  tag: 'Test',
  auth: 'account',
  errors: [],
  body: z.object({ text: z.string() }),
  response: z.object({ length: z.number() }),
  handler: async ({ body }) => {
    handled += 1;
    return { length: body.text.length };
  },
});

const start = async (options: Partial<HttpOptions> = {}) => {
  server = await startTestHttp({ routes: [slow, wait, large, echo], ...options });
};

function dial(): { socket: Socket; text: () => string; closed: Promise<void> } {
  const socket = connect({ host: '127.0.0.1', port: server.port, allowHalfOpen: true });
  let text = '';
  socket.on('error', () => {});
  socket.on('data', (chunk) => (text += chunk.toString('latin1')));
  return {
    socket,
    text: () => text,
    closed: new Promise((resolve) => void socket.once('close', () => resolve())),
  };
}

/** Everything that is answered, once the client has ended its side. */
async function answersTo(...pieces: (string | Buffer)[]): Promise<string> {
  const { socket, text, closed } = dial();
  socket.setNoDelay(true);
  for (const piece of pieces) {
    socket.write(piece);
    // Each piece arrives as a separate read.
    await new Promise(setImmediate);
  }
  socket.end();
  await closed;
  return text();
}

const statusesOf = (text: string) =>
  [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
const bodiesOf = (text: string) => [...text.matchAll(/\{"(?:n|length)":[^}]*\}/g)].map(String);

const get = (path: string, headers = 'Host: x\r\n') => `GET ${path} HTTP/1.1\r\n${headers}\r\n`;
const post = (text: string, blanks = '') => {
  const body = `{"text":${blanks}${JSON.stringify(text)}}`;
  return `POST /echo HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
};
const inChunks = (text: string, bytes: number, blanks = '') => {
  const body = `{"text":${blanks}${JSON.stringify(text)}}`;
  const chunks = body.match(new RegExp(`.{1,${bytes}}`, 'gs')) ?? [];
  const coded = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('');
  return `POST /echo HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${coded}0\r\nSum: 1\r\n\r\n`;
};
const range = (count: number) => Array.from({ length: count }, (_, n) => n);

test('thousands of pipelined requests are answered in order, each parsed when it is its turn', async () => {
  await start();
  const text = await answersTo(
    range(3_000)
      .map((n) => get(`/slow/${n}`))
      .join(''),
  );
  expect(bodiesOf(text)).toEqual(range(3_000).map((n) => `{"n":"${n}"}`));
  expect(parsed).toBe(3_000);
  expect(mostAtOnce).toBe(1);
});

test('a client that arrives in a crowd of such connections is answered before they are', async () => {
  await start();
  const crowd = range(40).map(() => {
    const { socket, closed } = dial();
    socket.write(get('/slow/1').repeat(2_000));
    return { socket, closed };
  });
  await Promise.all(crowd.map(({ socket }) => once(socket, 'data')));
  const other = connect({ host: '127.0.0.1', port: server.port, localAddress: '127.0.0.2' });
  other.write(get('/slow/other'));
  expect(String((await once(other, 'data'))[0])).toContain('{"n":"other"}');
  expect(finished).toBeLessThan(40_000);
  expect(mostAtOnce).toBeLessThanOrEqual(41);
  for (const socket of [other, ...crowd.map(({ socket: one }) => one)]) socket.destroy();
  await Promise.all(crowd.map(({ closed }) => closed));
});

describe('what Node would answer by itself waits its turn too', () => {
  const upgrade = 'Host: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n';
  test.each<[string, string, number[]]>([
    ['plain', get('/slow/1').repeat(3), [200, 200, 200]],
    ['nohost', get('/slow/1', '').repeat(3), [400]],
    ['two hosts', get('/slow/1', 'Host: x\r\nHost: x\r\n').repeat(3), [400]],
    ['expect', get('/slow/1', 'Host: x\r\nExpect: x\r\n').repeat(3), [417]],
    [
      'continue',
      get('/slow/1', 'Host: x\r\nExpect: 100-continue\r\n').repeat(2),
      [100, 200, 100, 200],
    ],
    ['upgrade', get('/slow/1', upgrade).repeat(3), [404]],
    [
      'upgrade of nothing known',
      get('/slow/1', 'Host: x\r\nConnection: upgrade\r\nUpgrade: h2c\r\n').repeat(2),
      [200, 200],
    ],
    ['CONNECT', 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(3), [405]],
    ['no HTTP', 'HELLO\r\n\r\n'.repeat(3), [400]],
    ['no HTTP behind it', `${get('/slow/1')}HELLO\r\n\r\n`, [200, 400]],
    ['HTTP/1.0 without Host', 'GET /slow/1 HTTP/1.0\r\n\r\n', [200]],
  ])('%s', async (_name, text, statuses) => {
    await start();
    expect(statusesOf(await answersTo(text))).toEqual(statuses);
    expect(mostAtOnce).toBeLessThanOrEqual(1);
  });
});

test.each([
  ['CONNECT', 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['an upgrade', get('/nowhere', 'Host: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n')],
  ['what is no HTTP', 'A\r\n\r\n'],
])('a connection that is refused, of %s, is not reset behind its answer', async (_name, text) => {
  await start();
  const { socket, closed } = dial();
  let wasReset = false;
  socket.on('error', () => (wasReset = true));
  socket.write(text);
  await once(socket, 'end');
  const other = dial();
  for (let n = 1; n <= 20; n += 1) {
    socket.write('more');
    const answered = once(other.socket, 'data');
    other.socket.write(get('/slow/1'));
    await answered;
  }
  expect(wasReset).toBe(false);
  for (const one of [other, { socket, closed }]) {
    one.socket.destroy();
    await one.closed;
  }
});

test('it does not matter where the bytes are split', async () => {
  await start();
  const requests = [
    get('/slow/a'),
    post('one'),
    `\r\n${post('behind an empty line, and with some', '\r\n\r\n\r\n\r\n')}`,
    inChunks('in small chunks', 1),
    inChunks('in larger ones', 7, '\r\n\r\n'),
    get('/slow/b', 'Host: x\r\nExpect: 100-continue\r\n'),
    post('x'.repeat(5_000)),
    get('/slow/c'),
  ];
  const all = Buffer.from(requests.join(''), 'latin1');
  const whole = await answersTo(all);
  expect(statusesOf(whole)).toEqual([200, 200, 200, 200, 200, 100, 200, 200, 200]);
  const expected = bodiesOf(whole);
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(fc.integer({ min: 1, max: all.length - 1 }), { maxLength: 30 }),
      async (places) => {
        const cuts = [0, ...places.sort((a, b) => a - b), all.length];
        const pieces = cuts.slice(1).map((end, n) => all.subarray(cuts[n], end));
        expect(bodiesOf(await answersTo(...pieces))).toEqual(expected);
      },
    ),
    { numRuns: 60 },
  );
  expect(mostAtOnce).toBe(1);
});

test('a body of a hundred thousand chunks arrives, and so does what follows it', async () => {
  await start();
  const text = await answersTo(inChunks('y'.repeat(100_000), 1) + get('/slow/next'));
  expect(bodiesOf(text)).toEqual(['{"length":100000}', '{"n":"next"}']);
});

test.each(['\0', ' ', '}', '\x1a', 'x\r\n\r\n'])(
  'one byte too many behind a body (%j) takes nothing from its answer',
  async (extra) => {
    await start();
    expect(statusesOf(await answersTo(post('one') + extra))).toEqual([200, 400]);
    expect(statusesOf(await answersTo(post('one'), extra))).toEqual([200, 400]);
  },
);

test('a body that is itself broken gets only the answer 400', async () => {
  await start();
  const broken = inChunks('a', 100).replace(/\r\n\r\n/, '\r\n\r\nZ');
  expect(statusesOf(await answersTo(broken))).toEqual([400]);
  expect(handled).toBe(0);
});

test('a client that does not read its answers is not asked for more requests', async () => {
  await start();
  const { socket, closed } = dial();
  socket.pause();
  socket.write(get('/large').repeat(1_000));
  await expect.poll(() => handled).toBeGreaterThan(0);
  // Meanwhile the requests of another client go through many turns of the loop.
  for (const n of range(20)) await server.fetch(`/slow/${n}`);
  expect(handled).toBeLessThan(60);
  socket.destroy();
  await closed;
});

test('pipelined bytes have a limit, and an address may use a part of it', async () => {
  await start({ aheadBytes: 40_000 });
  const first = dial();
  first.socket.write(get('/wait') + get('/slow/1').repeat(400));
  await expect.poll(() => waiting.length).toBe(1);
  const second = dial();
  second.socket.write(get('/wait') + get('/slow/1').repeat(400));
  await second.closed;
  const other = connect({ host: '127.0.0.1', port: server.port, localAddress: '127.0.0.2' });
  other.write(get('/slow/2').repeat(10));
  expect(String((await once(other, 'data'))[0])).toContain('{"n":"2"}');
  other.destroy();
  for (const goOn of waiting.splice(0)) goOn();
  first.socket.end();
  await first.closed;
  expect(statusesOf(first.text())).toHaveLength(401);
});
