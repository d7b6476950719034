import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Reading } from '../../../src/cli/simulate/devices.ts';

/**
 * The answers of a service that stores measurements badly, over real HTTP and in pages. It has as many events as
 * measurements.
 */
export type FakeHistory = { url: string; requests: () => number; close(): Promise<void> };

export async function startFakeHistory(
  stored: (uuid: string) => Reading[],
  pageSize: number,
): Promise<FakeHistory> {
  let requests = 0;
  const server = createServer((request, response) => {
    requests += 1;
    const url = new URL(request.url ?? '/', 'http://fake');
    const [, , kind, uuid = ''] = url.pathname.split('/');
    const all = stored(uuid).toReversed();
    const first = Number(url.searchParams.get('cursor') ?? 0);
    if (first + pageSize < all.length) {
      url.searchParams.set('cursor', String(first + pageSize));
      response.setHeader('Link', `<${url.pathname}${url.search}>; rel="next"`);
    }
    const measurements = all.slice(first, first + pageSize);
    const events = measurements.map(({ ts }) => ({ timestamp: ts }));
    const page = kind === 'measurements' ? { measurements } : { events };
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify({ ...page, timestamp: 0 }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: () => requests,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
