import { setTimeout as delay } from 'node:timers/promises';

export type Request = {
  method?: string;
  token?: string | null;
  /** The console's cookie, in the form of a `Cookie` header. */
  cookie?: string;
  /** The `Idempotency-Key`. */
  key?: string;
  body?: unknown;
  accept?: string | undefined;
};

/** An answer. `next`: the path of the next page, if the answer names one. */
export type Reply = { status: number; body: unknown; next: string | null };

/** Members of an answer's outermost object that depend on the moment or on the program. */
const volatile = ['timestamp', 'requestId', 'version'];

/** Sends a request. Returns JSON parsed and without volatile members, anything else as text. */
export async function ask(url: string, path: string, request: Request = {}): Promise<Reply> {
  const { method = 'GET', token, cookie, key, body, accept } = request;
  const headers: Record<string, string> = {};
  if (token) headers['Authorization'] = `Bearer ${token}`;
  if (cookie) headers['Cookie'] = cookie;
  if (key) headers['Idempotency-Key'] = key;
  if (accept) headers['Accept'] = accept;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  const response = await fetch(url + path, {
    method,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await response.text();
  const link = /<([^>]+)>; rel="next"/.exec(response.headers.get('link') ?? '');
  const type = response.headers.get('content-type') ?? '';
  const isJson = type.includes('json') && !type.includes('ndjson');
  return {
    status: response.status,
    body: isJson ? withoutVolatile(JSON.parse(text)) : text,
    next: link?.[1] ?? null,
  };
}

function withoutVolatile(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  return Object.fromEntries(Object.entries(body).filter(([name]) => !volatile.includes(name)));
}

/** The body of a 200; throws for anything else. */
export async function call<T = Record<string, unknown>>(
  url: string,
  path: string,
  request: Request = {},
): Promise<T> {
  const { status, body } = await ask(url, path, request);
  if (status !== 200) throw new Error(`${status} ${path}: ${JSON.stringify(body)}`);
  return body as T;
}

/** Looks again and again until the result is not null. A summary of what people are told comes after a minute. */
export async function until<T>(what: string, look: () => Promise<T | null>): Promise<T> {
  const deadline = performance.now() + 120_000;
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    if (performance.now() > deadline) throw new Error(`Not within 120 s: ${what}.`);
    await delay(25);
  }
}
