import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Text = { notificationId: number; phoneNumber: string; text: string };

/** Receives SMS as an operator's webhook would. */
export type Receiver = { url: string; texts: Text[]; close(): Promise<void> };

export async function startReceiver(): Promise<Receiver> {
  const texts: Text[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      texts.push(JSON.parse(body) as Text);
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/sms`,
    texts,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
