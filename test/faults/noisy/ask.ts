import { Agent, request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { Target } from './target.ts';
import type { Tally } from './tally.ts';

export type Answer = { status: number; text: string; retryAfterSeconds: number };

export type AskOptions = {
  token?: string;
  /** Sent as JSON; text is sent as it is. */
  body?: unknown;
  headers?: Record<string, string>;
  address?: string;
  /** Its text is discarded as it arrives. */
  isDiscarded?: boolean;
};

/** Sends requests over kept connections. Status 0 means no answer. Counts answers by status. */
export function createAsk(target: Target, tally: Tally) {
  const agent = new Agent({ keepAlive: true, maxSockets: 2_000 });
  return (method: string, path: string, options: AskOptions = {}): Promise<Answer> =>
    new Promise((resolve) => {
      const text = textOf(options.body);
      const sent = request(target.url + path, {
        method,
        agent,
        localAddress: options.address ?? target.address,
        headers: headersOf(options, text),
      });
      const done = (answer: Answer) => {
        tally.count(`HTTP ${answer.status}`);
        resolve(answer);
      };
      sent.on('socket', tally.watch);
      sent.on('error', () => done({ status: 0, text: '', retryAfterSeconds: 0 }));
      sent.on('response', (response) => void read(response, options.isDiscarded).then(done));
      sent.end(text);
    });
}

function textOf(body: unknown): string | undefined {
  return body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
}

function headersOf({ token, headers }: AskOptions, text: string | undefined) {
  return {
    ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    ...(text === undefined ? {} : { 'Content-Type': 'application/json' }),
    // With a length, because node would send it chunked otherwise.
    ...(text === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(text)) }),
    ...headers,
  };
}

async function read(response: IncomingMessage, isDiscarded = false): Promise<Answer> {
  const status = response.statusCode ?? 0;
  const retryAfterSeconds = Number(response.headers['retry-after'] ?? 0);
  let text = '';
  try {
    for await (const chunk of response) if (!isDiscarded) text += String(chunk);
  } catch {
    return { status: 0, text, retryAfterSeconds };
  }
  return { status, text, retryAfterSeconds };
}
