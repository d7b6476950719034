import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createRequestScheduler } from '../../src/http/arrivals.ts';
import { routes } from './routes.ts';
import { startTestHttp } from './start.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setImmediate', 'setTimeout'] }));
afterEach(() => void vi.useRealTimers());

type Asked = { from?: string; headers?: IncomingMessage['headers']; url?: string };
type Given = IncomingMessage & Required<Asked>;

const largeBytes = 1_048_576;
const create = () =>
  createRequestScheduler({
    addressOf: (request) => (request as Given).from,
    isVital: (path) => path === '/livez',
    mostPerTurn: 4,
    largeBytes,
  });

let begun: string[] = [];
beforeEach(() => void (begun = []));

function ask(turns: ReturnType<typeof create>, name: string, asked: Asked = {}): boolean {
  const { from = 'a', headers = {}, url = '/' } = asked;
  return turns.start({ from, headers, url } as Given, () => begun.push(name));
}

const taken = () => begun.splice(0);
const yieldToEventLoop = () => vi.advanceTimersToNextTimer();

test('a few requests start in a turn of the loop, and the others in later turns', () => {
  const turns = create();
  for (let n = 0; n < 10; n += 1) expect(ask(turns, String(n))).toBe(true);
  expect(taken()).toEqual(['0', '1', '2', '3']);
  expect(turns.countWaiting()).toBe(6);
  yieldToEventLoop();
  expect(taken()).toEqual(['4', '5', '6', '7']);
  // A new request waits behind earlier ones of its address.
  ask(turns, 'later');
  yieldToEventLoop();
  expect(taken()).toEqual(['8', '9', 'later']);
  yieldToEventLoop();
  expect(turns.countWaiting()).toBe(0);
  ask(turns, 'at once');
  expect(taken()).toEqual(['at once']);
});

test('addresses take turns, so do the clients of one address, and orchestrators queue separately', () => {
  const turns = create();
  for (let n = 0; n < 20; n += 1) ask(turns, `a${n}`, { headers: { authorization: 'Bearer a' } });
  taken();
  ask(turns, 'cookie', { headers: { cookie: 'session' } });
  ask(turns, 'other', { from: 'b' });
  ask(turns, 'probe', { url: '/livez?now' });
  ask(turns, 'login', { url: '/v2/accounts/login' });
  yieldToEventLoop();
  expect(taken()).toEqual(['a4', 'other', 'probe', 'cookie']);
  yieldToEventLoop();
  expect(taken()[0]).toBe('login');
});

test('a crowd is answered at a pace that leaves time for others', () => {
  const turns = create();
  for (let n = 0; n < 600; n += 1) ask(turns, String(n));
  yieldToEventLoop();
  expect(taken()).toHaveLength(8);
  // Nothing more starts until time has passed, however many turns the loop makes.
  vi.advanceTimersByTime(1);
  expect(taken()).toEqual([]);
  vi.advanceTimersByTime(3);
  expect(taken()).toHaveLength(4);
  while (turns.countWaiting() > 500) yieldToEventLoop();
  taken();
  // Few are left, so they need only turns of the loop.
  vi.advanceTimersByTime(3);
  expect(taken().length).toBeGreaterThanOrEqual(8);
});

test('bodies that arrive while their requests wait have a limit, and an address may use a quarter of it', () => {
  const turns = create();
  for (let n = 0; n < 4; n += 1) ask(turns, 'first');
  const open = { headers: { 'transfer-encoding': 'chunked' } };
  const large = { headers: { 'content-length': '10000000' } };
  expect(ask(turns, 'open', open)).toBe(true);
  expect(ask(turns, 'large', large)).toBe(true);
  expect(ask(turns, 'beyond', open)).toBe(false);
  expect(ask(turns, 'of another address', { ...open, from: 'b' })).toBe(true);
  expect(ask(turns, 'small', { headers: { 'content-length': '16384' } })).toBe(true);
  yieldToEventLoop();
  expect(taken()).not.toContain('beyond');
  // Requests that have started released their share.
  for (let n = 0; n < 4; n += 1) ask(turns, 'again');
  expect(ask(turns, 'later', open)).toBe(true);
});

test('a request for which there is no memory to wait is answered 503, and its connection ends', async () => {
  vi.useRealTimers();
  // Two of its size may wait.
  const http = await startTestHttp({ routes, clock: () => 1_700_000_000_000, largeBytes });
  const sockets = Array.from({ length: 100 }, () => connect(http.port, '127.0.0.1'));
  // Each is accepted, and has nothing under way.
  for (const socket of sockets) socket.write('HEAD /nothing HTTP/1.1\r\nHost: x\r\n\r\n');
  await Promise.all(sockets.map((socket) => once(socket, 'data')));
  const answers = sockets.map(async (socket) => {
    let said = '';
    try {
      for await (const chunk of socket) {
        said += String(chunk);
        if (!said.startsWith('HTTP/1.1 503')) break;
      }
    } catch {
      // What is not read of the body may reset the connection, behind the answer.
    }
    return said;
  });
  // All of them arrive in one turn of the loop, which reads most of them, however long that takes, and begins 32.
  const head = 'POST /enter HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n';
  for (const socket of sockets) socket.write(`${head}Content-Type: text/plain\r\n\r\nx`);
  const refused = (await Promise.all(answers)).filter((said) => said.startsWith('HTTP/1.1 503'));
  expect(refused.length).toBeGreaterThan(0);
  expect(refused.length).toBeLessThan(sockets.length);
  for (const said of refused) {
    expect(said).toMatch(/^Retry-After: 2\r$/im);
    expect(said).toMatch(/^Connection: close\r$/im);
    expect(JSON.parse(/\{.*\}/s.exec(said)?.[0] ?? '')).toMatchObject({
      type: 'urn:sensorium:error:unavailable',
      status: 503,
      timestamp: 1_700_000_000_000,
    });
  }
  await http.close();
});
