import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import type { Reply, Transport } from './exchange.ts';
import { codeOf, messageOf } from '../../lib/thrown.ts';

/** A refusal, or no answer at all; the message is for the person at the terminal. */
export class RestError extends Error {
  /** The HTTP status; 0 when there was no answer. */
  readonly status: number;

  constructor(message: string, status: number, cause?: unknown) {
    super(message, { cause });
    this.name = 'RestError';
    this.status = status;
  }
}

type Call<S extends z.ZodType> = {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  path: string;
  answer: S;
  body?: unknown;
};
export type Answered<T> = { value: T; next: string | null };

/** One service, called by one caller. */
export type Rest = {
  /** Answers the parsed body and the path of the next page, if there is one. Throws `RestError`. */
  call<S extends z.ZodType>(call: Call<S>): Promise<Answered<z.output<S>>>;
  /** The same service with a bearer token. */
  as(token: string): Rest;
};

const maxTries = 5;
const longestWaitMs = 10_000;

export function createRest(transport: Transport, baseUrl: string, token?: string): Rest {
  return {
    as: (next) => createRest(transport, baseUrl, next),
    async call({ method, path, answer, body }) {
      const url = new URL(baseUrl + path);
      const headers = {
        Accept: 'application/json',
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
      };
      const exchange = {
        method,
        url,
        headers,
        body: body === undefined ? body : JSON.stringify(body),
      };
      const reply = await patiently(() => transport.send(exchange).catch(unreachable(baseUrl)));
      if (reply.status !== 200) throw refusal(`${method} ${url.pathname}`, reply);
      const parsed = answer.safeParse(parseJson(reply.text));
      if (!parsed.success) {
        const problem = `answered something unexpected: ${z.prettifyError(parsed.error)}`;
        throw new RestError(`${method} ${url.pathname} ${problem}`, reply.status);
      }
      return { value: parsed.data, next: nextPage(reply.headers.link, url) };
    },
  };
}

/** 429 and 503 name a time to wait; short ones are waited for. */
async function patiently(send: () => Promise<Reply>): Promise<Reply> {
  for (let tries = 1; ; tries += 1) {
    const reply = await send();
    const waitMs = Number(reply.headers['retry-after'] ?? Number.NaN) * 1_000;
    const busy = reply.status === 429 || reply.status === 503;
    if (!busy || tries === maxTries || !(waitMs <= longestWaitMs)) return reply;
    await delay(waitMs);
  }
}

function unreachable(baseUrl: string) {
  return (error: unknown): never => {
    const code = codeOf(error) || messageOf(error);
    const hint = code === 'ECONNREFUSED' ? ' Is the service running? "npm start" starts it.' : '';
    throw new RestError(`No answer from ${baseUrl} (${code}).${hint}`, 0, error);
  };
}

const Problem = z.object({ title: z.string().optional(), detail: z.string().optional() });

function refusal(what: string, reply: Reply): RestError {
  const problem = Problem.safeParse(parseJson(reply.text)).data;
  const why = problem?.detail ?? problem?.title;
  return new RestError(`${what} answered ${reply.status}${why ? `: ${why}` : ''}`, reply.status);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The path and query of `Link: <…>; rel="next"` (RFC 8288). */
function nextPage(link: string | string[] | undefined, url: URL): string | null {
  const match = /<([^>]*)>\s*;\s*rel="?next"?/.exec(String(link ?? ''));
  if (!match) return null;
  const next = new URL(match[1] ?? '', url);
  return next.pathname + next.search;
}
