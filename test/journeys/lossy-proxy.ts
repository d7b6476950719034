import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export type LossyProxy = { url: string; close(): Promise<void> };

type Page = { measurements?: unknown[] };

/** Forwards everything to the service, but drops one measurement from the first page it answers. */
export async function startLossyProxy(serviceUrl: string): Promise<LossyProxy> {
  let lost = false;
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const headers = new Headers();
      for (const name of ['authorization', 'content-type', 'accept']) {
        const value = request.headers[name];
        if (typeof value === 'string') headers.set(name, value);
      }
      const body = chunks.length > 0 ? Buffer.concat(chunks) : undefined;
      const url = new URL(request.url ?? '/', serviceUrl);
      const answer = await fetch(url, { method: request.method, headers, body });
      const content = (await answer.json()) as Page;
      if (!lost && (content.measurements?.length ?? 0) > 1) {
        content.measurements?.splice(1, 1);
        lost = true;
      }
      const link = answer.headers.get('link');
      if (link !== null) response.setHeader('Link', link);
      response.writeHead(answer.status, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify(content));
    })().catch((error: unknown) => response.destroy(error as Error));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
