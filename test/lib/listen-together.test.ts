import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { platform } from 'node:process';
import { afterEach, expect, test } from 'vitest';
import { listenTogether } from '../../src/lib/servers.ts';

const open: Server[] = [];
afterEach(() => {
  for (const server of open.splice(0)) if (server.listening) server.close();
});

/** Several servers that handle connections in the same way. */
function serversOf(count: number, onConnection: (socket: Socket) => void) {
  const servers = Array.from({ length: count }, () => createServer(onConnection));
  open.push(...servers);
  return servers as [Server, ...Server[]];
}

const here = { host: '127.0.0.1', backlog: 256 };

test.skipIf(platform !== 'linux')('one turn of the loop accepts several connections', async () => {
  let accepted = 0;
  let inTurn = 0;
  let mostInTurn = 0;
  const servers = serversOf(16, (socket) => {
    accepted += 1;
    inTurn += 1;
    mostInTurn = Math.max(mostInTurn, inTurn);
    socket.on('error', () => undefined).destroy();
  });
  const port = await listenTogether(servers, { ...here, port: 0 });
  // The kernel connects them before this process can accept any.
  const clients = Array.from({ length: 64 }, () =>
    connect({ host: here.host, port }).on('error', () => undefined),
  );
  while (accepted < clients.length) {
    await new Promise(setImmediate);
    inTurn = 0;
  }
  expect(mostInTurn).toBeGreaterThan(4);
});

test('a shared port still excludes other processes', async () => {
  const [other] = serversOf(1, () => undefined);
  await once(
    other.listen({ host: here.host, port: 0, reusePort: platform === 'linux' }),
    'listening',
  );
  const address = other.address();
  if (address === null || typeof address === 'string') throw new Error('No port.');
  const servers = serversOf(2, () => undefined);
  await expect(listenTogether(servers, { ...here, port: address.port })).rejects.toMatchObject({
    code: 'EADDRINUSE',
  });
  expect(servers.some(({ listening }) => listening)).toBe(false);
});
