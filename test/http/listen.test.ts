import { once } from 'node:events';
import { connect } from 'node:net';
import { platform } from 'node:process';
import { expect, test } from 'vitest';
import { ConnectionPlaces } from '../../src/lib/connection-places.ts';
import { startTestHttp } from './start.ts';

test.skipIf(platform !== 'linux')('one turn of the loop accepts several connections', async () => {
  const places = new ConnectionPlaces({
    most: Infinity,
    kept: 0,
    ofListener: { http: Infinity, mqtt: 0 },
  });
  const http = await startTestHttp({ routes: [], places });
  // The kernel connects them before this process can accept any.
  const clients = Array.from({ length: 64 }, () =>
    connect({ host: '127.0.0.1', port: http.port }).on('error', () => undefined),
  );
  let [accepted, mostInTurn] = [0, 0];
  while (accepted < clients.length) {
    await new Promise(setImmediate);
    const now = places.countOf('http');
    mostInTurn = Math.max(mostInTurn, now - accepted);
    accepted = now;
  }
  expect(mostInTurn).toBeGreaterThan(4);
  for (const client of clients) client.destroy();
  await http.close();
});

test('closing waits for connections of every socket, and frees the port', async () => {
  const http = await startTestHttp({ routes: [] });
  const clients = await Promise.all(
    Array.from({ length: 32 }, async () => {
      const client = connect({ host: '127.0.0.1', port: http.port });
      client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      await once(client, 'data');
      return client;
    }),
  );
  const gone = Promise.all(
    clients.map(async (client) => client.closed || once(client.resume(), 'close')),
  );
  await http.close();
  await gone;
  const again = await startTestHttp({ routes: [], port: http.port });
  expect(again.port).toBe(http.port);
  await again.close();
});
