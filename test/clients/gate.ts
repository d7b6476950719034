import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A proxy before a service that can break off an answer. */
export type Gate = {
  url: string;
  /** Breaks off the bodies of answers to requests whose address contains this; null: none. */
  breakAt(part: string | null): void;
  /** Requests so far. */
  count(): number;
  close(): Promise<void>;
};

export async function startGate(target: string): Promise<Gate> {
  let breaking: string | null = null;
  let count = 0;
  const server = createServer((asked, answer) => {
    count += 1;
    const breaks = breaking !== null && asked.url?.includes(breaking) === true;
    const onward = request(target + asked.url, { method: asked.method, headers: asked.headers });
    onward.on('response', (answered) => {
      answer.writeHead(answered.statusCode ?? 502, answered.headers);
      if (breaks) answer.write('deviceAuthUuid,', () => answer.destroy());
      else answered.pipe(answer);
    });
    onward.on('error', () => answer.destroy());
    asked.pipe(onward);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    breakAt: (part) => (breaking = part),
    count: () => count,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
