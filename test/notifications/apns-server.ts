import { readFileSync } from 'node:fs';
import { createSecureServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';

export const tlsFile = (name: string): string => new URL(`./tls/${name}`, import.meta.url).pathname;

type Headers = Record<string, string | string[] | undefined>;
export type Received = { path: string; headers: Headers; body: unknown };
export type Answer = { status: number; body?: unknown } | 'never';

/** A server that answers like Apple's push service: one of the given answers for each request, then 200. */
export async function startApnsServer(answers: Answer[] = []) {
  const received: Received[] = [];
  const sessions = new Set<ServerHttp2Session>();
  const server = createSecureServer({
    key: readFileSync(tlsFile('localhost-key.pem')),
    cert: readFileSync(tlsFile('localhost-cert.pem')),
  });
  server.on('session', (session) => {
    sessions.add(session);
    session.on('close', () => sessions.delete(session));
  });
  server.on('stream', (stream, headers) => {
    let text = '';
    stream.setEncoding('utf8');
    stream.on('error', () => undefined);
    stream.on('data', (chunk: string) => (text += chunk));
    stream.on('end', () => {
      const body: unknown = JSON.parse(text);
      received.push({ path: String(headers[':path']), headers, body });
      const answer = answers.shift() ?? { status: 200 };
      if (answer === 'never') return;
      stream.respond({ ':status': answer.status, 'apns-id': 'an-id' });
      stream.end(answer.body === undefined ? '' : JSON.stringify(answer.body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    received,
    close: async () => {
      for (const session of sessions) session.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
