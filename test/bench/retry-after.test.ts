import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test, vi } from 'vitest';
import { createFleet } from '../../bench/client/fleet.ts';

test('a device over HTTP that is told to wait sends again after the others', async () => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const { url = '' } = request;
    const isFirst = !asked.includes(url);
    asked.push(url);
    if (isFirst && url === '/told') response.setHeader('Retry-After', '2');
    response.writeHead(isFirst ? 503 : 200, { 'Content-Length': 2 }).end('{}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const http = { port, connections: 1, isKept: true, body: 'json', most: 1 } as const;
  const fleet = createFleet({
    host: '127.0.0.1',
    port,
    devices: ['told', 'untold'].map((topic) => ({ clientId: topic, topic, http })),
    payload: (_device, seq) => (seq === 0 ? '{}' : null),
    reconnectDelayMs: 10,
    obeysRetryAfter: true,
  });
  fleet.start();
  await fleet.connect();
  await vi.waitUntil(() => fleet.counts().acknowledged === 2, { timeout: 60_000 });
  expect(asked.toSorted()).toEqual(['/told', '/told', '/untold', '/untold']);
  expect(asked.at(-1)).toBe('/told');
  await fleet.close('reset');
  server.closeAllConnections();
  server.close();
});
