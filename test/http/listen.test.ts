import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { platform } from 'node:process';
import { expect, test } from 'vitest';
import { listen } from '../../src/http/server.ts';

test.skipIf(platform !== 'linux')('one turn of the loop accepts several connections', async () => {
  const server = createServer();
  const listening = await listen(server, '127.0.0.1', 0);
  let accepted = 0;
  let inTurn = 0;
  let mostInTurn = 0;
  server.on('connection', (socket) => {
    accepted += 1;
    inTurn += 1;
    mostInTurn = Math.max(mostInTurn, inTurn);
    socket.on('error', () => undefined).destroy();
  });
  // The kernel connects them before this process can accept any.
  const clients = Array.from({ length: 64 }, () =>
    connect({ host: '127.0.0.1', port: listening.port }).on('error', () => undefined),
  );
  while (accepted < clients.length) {
    await new Promise(setImmediate);
    inTurn = 0;
  }
  expect(mostInTurn).toBeGreaterThan(4);
  await listening.close();
});

test('closing waits for connections of every socket, and frees the port', async () => {
  const server = createServer((_request, response) => void response.end('here'));
  const listening = await listen(server, '127.0.0.1', 0);
  const clients = await Promise.all(
    Array.from({ length: 32 }, async () => {
      const client = connect({ host: '127.0.0.1', port: listening.port });
      client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      await once(client, 'data');
      return client;
    }),
  );
  let isClosed = false;
  const closed = listening.close().then(() => (isClosed = true));
  // node:http itself closes the idle ones.
  await Promise.all(clients.map(async (client) => client.closed || once(client.resume(), 'close')));
  await closed;
  expect(isClosed).toBe(true);
  const again = await listen(createServer(), '127.0.0.1', listening.port);
  expect(again.port).toBe(listening.port);
  await again.close();
});
