import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Received = { url: string; headers: IncomingHttpHeaders; body: string };

export type HookReceiver = {
  url: string;
  received: Received[];
  /** Resolves with the first request that `suits`, as soon as there is one. */
  request: (suits?: (request: Received) => boolean) => Promise<Received>;
  close: () => Promise<void>;
};

export type HookReply = { status: number; headers?: Record<string, string> } | 'never';

/** Answers each request as `reply` says; 204 by default. */
export async function startHookReceiver(
  reply: (request: Received) => HookReply | Promise<HookReply> = () => ({ status: 204 }),
): Promise<HookReceiver> {
  const received: Received[] = [];
  const arrived = new EventTarget();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => void chunks.push(chunk));
    request.on('end', () => {
      const { url = '', headers } = request;
      const one = { url, headers, body: Buffer.concat(chunks).toString() };
      received.push(one);
      void Promise.resolve(reply(one)).then((answer) => {
        if (answer !== 'never') response.writeHead(answer.status, answer.headers).end();
      });
      arrived.dispatchEvent(new Event('request'));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    async request(suits = () => true) {
      for (;;) {
        const found = received.find(suits);
        if (found) return found;
        await new Promise((resolve) =>
          arrived.addEventListener('request', resolve, { once: true }),
        );
      }
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
