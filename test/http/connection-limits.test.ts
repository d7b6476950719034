import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import type { HttpOptions } from '../../src/http/server.ts';
import { startTestHttp, type TestHttp } from './start.ts';

let server: TestHttp;
let sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server.close();
});

const request = 'GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n';
const upgrade =
  'GET /mqtt HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';

/** Opens a connection that stays open. Null if it was closed unread, without an answer. */
async function dial(localAddress = '127.0.0.1', text = request): Promise<Socket | null> {
  const socket = connect({ host: '127.0.0.1', port: server.port, localAddress });
  sockets.push(socket);
  socket.on('error', () => {});
  socket.write(text);
  const isAnswered = await Promise.race([
    once(socket, 'data').then(() => true),
    once(socket, 'close').then(() => false),
  ]);
  return isAnswered ? socket : null;
}

const start = async (options: Partial<HttpOptions>) => {
  server = await startTestHttp({ routes: [], ...options });
};

/** Repeats until it is answered, that is, until the server has noticed that another one has gone. */
async function dialUntilAnswered(): Promise<Socket> {
  for (;;) {
    const socket = await dial();
    if (socket) return socket;
  }
}

test('each address may have the configured number of connections', async () => {
  await start({ connectionsPerAddress: 2 });
  const [first, second] = [await dial(), await dial()];
  expect(first && second).not.toBeNull();
  expect(await dial()).toBeNull();
  expect(await dial('127.0.0.2')).not.toBeNull();
  first?.destroy();
  await dialUntilAnswered();
  expect(await dial()).toBeNull();
});

test('all addresses together have a limit; beyond it, the oldest idle connection of the address with most is closed', async () => {
  await start({ connections: 3 });
  const [first, second] = [await dial('127.0.0.2'), await dial('127.0.0.2')];
  const third = await dial('127.0.0.3');
  if (!first || !second || !third) throw new Error('They were not answered.');
  const isClosed = once(first, 'close');
  expect(await dial('127.0.0.4')).not.toBeNull();
  await isClosed;
  expect([second.destroyed, third.destroyed]).toEqual([false, false]);
});

test('a connection whose request is being answered is not closed for another', async () => {
  let answer = () => {};
  const begun = new Promise<void>((resolve) => {
    const handle = (_request: unknown, response: ServerResponse) => {
      answer = () => response.end('late');
      resolve();
    };
    void start({ connections: 1, inFront: { prefix: '/slow', handle } }).then(() => {
      void dial('127.0.0.2', 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\n');
    });
  });
  await begun;
  expect(await dial('127.0.0.4')).toBeNull();
  answer();
  await dialUntilAnswered();
});

test('a trusted proxy has no limit of its own', async () => {
  await start({ connectionsPerAddress: 1, trustedProxies: ['127.0.0.0/30'] });
  expect(await dial()).not.toBeNull();
  expect(await dial()).not.toBeNull();
  expect(await dial('127.0.0.9')).not.toBeNull();
  expect(await dial('127.0.0.9')).toBeNull();
});

test('an upgraded connection is no longer counted', async () => {
  const upgraded: Socket[] = [];
  await start({
    connectionsPerAddress: 1,
    upgrades: {
      '/mqtt': (_request, socket) => {
        upgraded.push(socket as Socket);
        socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n');
      },
    },
  });
  for (let n = 0; n < 3; n++) expect(await dial('127.0.0.1', upgrade)).not.toBeNull();
  expect(upgraded).toHaveLength(3);
  expect(await dial()).not.toBeNull();
  expect(await dial()).toBeNull();
  for (const socket of upgraded) socket.destroy();
});
