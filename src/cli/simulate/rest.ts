import { randomBytes } from 'node:crypto';
import http, { type OutgoingHttpHeaders } from 'node:http';
import https from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { codeOf, messageOf } from '../../lib/thrown.ts';

/** A refusal, or no answer at all. The message is for the person at the terminal. */
class RestError extends Error {
  /** The HTTP status; 0 if there was no answer. */
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
  /** Returns the parsed body and the path of the next page, if there is one. Throws `RestError`. */
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
        const problem = `sent an unexpected answer: ${z.prettifyError(parsed.error)}`;
        throw new RestError(`${method} ${url.pathname} ${problem}`, reply.status);
      }
      return { value: parsed.data, next: nextPage(reply.headers.link, url) };
    },
  };
}

/** 429 and 503 name a time to wait. Short waits are observed. */
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

type Exchange = {
  method: string;
  url: URL;
  headers: OutgoingHttpHeaders;
  body?: string;
  /** Ends the request. */
  signal?: AbortSignal;
};
export type Reply = { status: number; headers: http.IncomingHttpHeaders; text: string };
type Transport = { send(exchange: Exchange): Promise<Reply>; close(): void };

const timeoutMs = 60_000;

/** HTTP with kept-alive connections. Node's own `fetch` cannot accept an unknown certificate. */
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
    // The server may close an idle connection at the moment of its reuse. That is not a failure.
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

export type SimulatorLogin = { email: string; password: string };
/** The account of a run; `throwAway` if the run registered it for itself. */
export type OpenAccount = SimulatorLogin & { rest: Rest; throwAway: boolean };

/** Logs in with the credentials, or registers an account that nobody else knows. */
export async function openAccount(
  rest: Rest,
  credentials: SimulatorLogin | null,
): Promise<OpenAccount> {
  if (credentials)
    return { ...credentials, rest: await login(rest, credentials), throwAway: false };
  const made = {
    email: `simulator-${randomBytes(6).toString('hex')}@example.org`,
    password: randomBytes(15).toString('base64url'),
  };
  const call = { method: 'POST', path: '/v2/accounts', answer: LoginAnswer, body: made } as const;
  const { value } = await rest.call(call).catch(explainClosed);
  return { ...made, rest: rest.as(value.accountAuthToken), throwAway: true };
}

async function login(rest: Rest, body: SimulatorLogin): Promise<Rest> {
  const path = '/v2/accounts/login';
  const { value } = await rest.call({ method: 'POST', path, answer: LoginAnswer, body });
  return rest.as(value.accountAuthToken);
}

function explainClosed(error: unknown): never {
  if (error instanceof RestError && error.status === 403) {
    const hint = 'Ask the administrator for an account and pass it with --account.';
    throw new RestError(`This service does not let people register accounts. ${hint}`, 403, error);
  }
  throw error;
}

/** The parts of the service's answers that the simulator reads. */
const LoginAnswer = z.object({ accountAuthToken: z.string() });

export const RegistrationAnswer = z.object({
  protocol: z.string(),
  host: z.string(),
  port: z.int(),
  deviceAuthUuid: z.string(),
  deviceAuthToken: z.string(),
});
export type RegistrationAnswer = z.infer<typeof RegistrationAnswer>;

export const PurposeAnswer = z.object({ purposeUuid: z.string() });

export const MeasurementsAnswer = z.object({
  measurements: z.array(z.object({ sId: z.string(), val: z.number(), ts: z.number() })),
});

export const EventsAnswer = z.object({ events: z.array(z.object({ timestamp: z.number() })) });

export const AnyAnswer = z.unknown();

export const PollAnswer = z.object({
  messages: z.array(z.object({ topic: z.string(), payload: z.unknown() })),
  after: z.string(),
});

/** Messages on `down/profile` and `down/errors`. */
export const ReceivedProfile = z.object({ pId: z.string() });
export const ErrorMessage = z.object({ reason: z.string(), message: z.string() });

/** A message on `down/token`. */
export const NewToken = z.object({ deviceAuthToken: z.string() });
