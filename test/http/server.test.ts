import { once } from 'node:events';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { stream } from '../../src/http/answer.ts';
import { defineRoute } from '../../src/http/route.ts';
import { startTestHttp } from './start.ts';

const shared = {
  method: 'get',
  auth: 'none',
  summary: 'A route',
  tag: 'Test',
  errors: [],
  response: z.unknown(),
} as const;

async function open(port: number): Promise<{ socket: Socket; text: () => string }> {
  let text = '';
  const socket = connect(port, '127.0.0.1');
  socket.on('data', (chunk) => (text += String(chunk)));
  socket.on('error', () => {});
  await once(socket, 'connect');
  return { socket, text: () => text };
}

describe('slow clients', () => {
  test.each([
    ['headers', 'GET / HTTP/1.1\r\nHost: x\r\n'],
    [
      'a body',
      'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
    ],
  ])('that never finish %s are answered 408 and closed', async (_name, start) => {
    const route = defineRoute({
      ...shared,
      method: 'post',
      path: '/',
      body: z.unknown(),
      handler: async () => ({}),
    });
    const http = await startTestHttp({
      routes: [route],
      headersTimeoutMs: 200,
      requestTimeoutMs: 300,
    });
    try {
      const { socket, text } = await open(http.port);
      socket.write(start);
      await once(socket, 'close');
      expect(text()).toMatch(/^HTTP\/1\.1 408 /);
      expect(text()).toContain('urn:sensorium:error:request-timeout');
    } finally {
      await http.close();
    }
  });
});

describe('streams', () => {
  test('are sent as they are produced, and their source ends when the client leaves', async () => {
    let ended = false;
    let aborted = false;
    const warnings: string[] = [];
    const onWarning = ({ name }: Error) => warnings.push(name);
    process.on('warning', onWarning);
    const route = defineRoute({
      ...shared,
      path: '/stream',
      handler: async ({ request: { signal } }) => {
        signal.addEventListener('abort', () => (aborted = true));
        async function* lines() {
          try {
            for (let i = 0; ; i += 1) {
              yield `${i}\n`;
              await new Promise((resolve) => setImmediate(resolve));
            }
          } finally {
            ended = true;
          }
        }
        return stream('text/csv', lines());
      },
    });
    const http = await startTestHttp({ routes: [route] });
    try {
      const controller = new AbortController();
      const response = await fetch(`${http.url}/stream`, { signal: controller.signal });
      expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8');
      const first = await response.body?.getReader().read();
      expect(String(Buffer.from(first?.value ?? []))).toMatch(/^0\n/);
      controller.abort();
      await vi.waitFor(() => expect([ended, aborted]).toEqual([true, true]), { timeout: 60_000 });
      expect(warnings).not.toContain('MaxListenersExceededWarning');
    } finally {
      process.off('warning', onWarning);
      await http.close();
    }
  });

  test('that break off break the connection: half an answer must not look complete', async () => {
    const route = defineRoute({
      ...shared,
      path: '/stream',
      handler: async () => {
        async function* lines() {
          yield 'first\n';
          await new Promise((resolve) => setImmediate(resolve));
          throw new Error('the database went away');
        }
        return stream('text/csv', lines());
      },
    });
    const http = await startTestHttp({ routes: [route] });
    try {
      const response = await fetch(`${http.url}/stream`, {
        headers: { 'accept-encoding': 'identity' },
      });
      await expect(response.text()).rejects.toThrow('terminated');
      await vi.waitFor(
        () => expect(http.lines.join()).toMatch(/"level":50.*the database went away/),
        { timeout: 60_000 },
      );
    } finally {
      await http.close();
    }
  });

  test('end when the service stops', async () => {
    const route = defineRoute({
      ...shared,
      path: '/stream',
      handler: async ({ request: { signal } }) => {
        async function* one() {
          yield 'begin\n';
          if (!signal.aborted) await once(signal, 'abort');
          yield 'end\n';
        }
        return stream('text/plain', one());
      },
    });
    const http = await startTestHttp({ routes: [route] });
    const response = await fetch(`${http.url}/stream`, {
      headers: { 'accept-encoding': 'identity' },
    });
    const text = response.text();
    await http.close();
    expect(await text).toBe('begin\nend\n');
  });
});

test('closing stops accepting and finishes requests under way', async () => {
  let release = () => {};
  let entered = () => {};
  const inside = new Promise<void>((resolve) => (entered = resolve));
  const route = defineRoute({
    ...shared,
    path: '/slow',
    handler: async () => {
      entered();
      await new Promise<void>((resolve) => (release = resolve));
      return { done: true };
    },
  });
  const http = await startTestHttp({ routes: [route] });
  const answer = http.fetch('/slow');
  await inside;
  const idle = await open(http.port);
  const closed = http.close();
  await expect(open(http.port)).rejects.toThrow('ECONNREFUSED');
  release();
  const { status, body, headers } = await answer;
  expect([status, body]).toEqual([200, { done: true }]);
  expect(headers.get('connection')).toBe('close');
  await closed;
  idle.socket.destroy();
});

test('a taken port is an error', async () => {
  const http = await startTestHttp({ routes: [] });
  try {
    await expect(startTestHttp({ routes: [], port: http.port })).rejects.toThrow('EADDRINUSE');
  } finally {
    await http.close();
  }
});

test('upgrades go to the handler of their path; others are answered', async () => {
  const http = await startTestHttp({
    routes: [defineRoute({ ...shared, path: '/plain', handler: async () => ({ plain: true }) })],
    upgrades: {
      '/mqtt': (_request, socket) =>
        void socket.end(
          'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
        ),
    },
  });
  const ask = (path: string, upgrade: string) =>
    new Promise<number>((resolve, reject) => {
      const headers = { connection: 'Upgrade', upgrade };
      const sent = request({ port: http.port, host: '127.0.0.1', path, headers, agent: false });
      sent.on('upgrade', (response, socket) => {
        socket.destroy();
        resolve(response.statusCode ?? 0);
      });
      sent.on('response', (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      sent.on('error', reject).end();
    });
  try {
    expect(await ask('/mqtt?x=1', 'websocket')).toBe(101);
    expect(await ask('/other', 'websocket')).toBe(404);
    expect(await ask('/toString', 'websocket')).toBe(404);
    expect(await ask('/plain', 'h2c')).toBe(200);
  } finally {
    await http.close();
  }
});
