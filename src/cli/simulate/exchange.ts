import http from 'node:http';
import https from 'node:https';
import type { OutgoingHttpHeaders } from 'node:http';
import { codeOf } from '../../lib/thrown.ts';

type Exchange = {
  method: string;
  url: URL;
  headers: OutgoingHttpHeaders;
  body?: string;
  /** Ends it. */
  signal?: AbortSignal;
};
export type Reply = { status: number; headers: http.IncomingHttpHeaders; text: string };
export type Transport = { send(exchange: Exchange): Promise<Reply>; close(): void };

const timeoutMs = 60_000;

/** HTTP with kept-alive connections. Node's own `fetch` has no way to accept an unknown certificate. */
export function createTransport(options: { insecure: boolean; maxConnections: number }): Transport {
  const shared = { keepAlive: true, maxSockets: options.maxConnections };
  const plain = new http.Agent(shared);
  const secure = new https.Agent({ ...shared, rejectUnauthorized: !options.insecure });
  return {
    send: (exchange) => send(exchange, exchange.url.protocol === 'https:' ? secure : plain),
    close() {
      plain.destroy();
      secure.destroy();
    },
  };
}

async function send(exchange: Exchange, agent: http.Agent, again = true): Promise<Reply> {
  const module = agent instanceof https.Agent ? https : http;
  const { method, headers, signal } = exchange;
  const request = module.request(exchange.url, {
    method,
    headers,
    agent,
    timeout: timeoutMs,
    ...(signal ? { signal } : {}),
  });
  try {
    return await reply(request, exchange.body);
  } catch (error) {
    // The server may close an idle connection in the moment it is used again: not a failure.
    const stale = request.reusedSocket && codeOf(error) === 'ECONNRESET';
    if (stale && again) return await send(exchange, agent, false);
    throw error;
  }
}

function reply(request: http.ClientRequest, body: string | undefined): Promise<Reply> {
  return new Promise((resolve, reject) => {
    request.on('error', reject);
    request.on('timeout', () =>
      request.destroy(new Error(`no answer within ${timeoutMs / 1_000} s`)),
    );
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
      });
    });
    request.end(body);
  });
}
