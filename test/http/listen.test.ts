import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { platform } from 'node:process';
import { expect, test } from 'vitest';
import { startTestHttp } from './start.ts';

/** Sockets that listen on this port of 127.0.0.1 (proc_net_tcp(5): 0A is TCP_LISTEN). */
function countListening(port: number): number {
  const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, address, , state]) => address === local && state === '0A').length;
}

test.skipIf(platform !== 'linux')('a turn of the loop accepts as many as 32', async () => {
  const http = await startTestHttp({ routes: [] });
  // It accepts one of each socket: test/lib/listen-together.test.ts.
  expect(countListening(http.port)).toBe(32);
  await http.close();
  expect(countListening(http.port)).toBe(0);
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
