import { compareClocks } from '../app/now.ts';
import type { ListedAlarm } from './types.ts';

/** An error that the service answered with; `detail` is for people. */
export class ApiError extends Error {
  readonly status: number;
  /** The error's code, for programs; empty if there was none. */
  readonly code: string;
  readonly requestId: string;
  readonly retryAfterSeconds: number | null;
  /** Which parts of the request are wrong, and why. */
  readonly problems: readonly { path: string; message: string }[];
  /** The newest values, for which an alarm cannot be closed. */
  readonly values: ListedAlarm['values'];
  /** The quota that would be exceeded. */
  readonly exceeded: Exceeded | null;

  constructor(status: number, problem: Problem, retryAfterSeconds: number | null) {
    super(problem.detail ?? '');
    this.status = status;
    this.code = problem.type?.replace('urn:sensorium:error:', '') ?? '';
    this.exceeded = exceededOf(problem);
    this.values = problem.values ?? [];
    this.requestId = problem.requestId ?? '';
    this.retryAfterSeconds = retryAfterSeconds;
    this.problems = problem.errors ?? [];
  }
}

type Exceeded = { quota: string; limit: number; used: number };

type Problem = Partial<Exceeded> & {
  type?: string;
  detail?: string;
  requestId?: string;
  errors?: { path: string; message: string }[];
  values?: ListedAlarm['values'];
};

function exceededOf({ quota, limit, used }: Problem): Exceeded | null {
  if (quota === undefined || limit === undefined || used === undefined) return null;
  return { quota, limit, used };
}

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';
type Query = Record<string, string | number | undefined>;

type Options = {
  query?: Query;
  body?: unknown;
  signal?: AbortSignal;
  /** A token to use instead of the cookie. */
  token?: string;
  /** The version that must still be there, as its answer gave it. */
  ifMatch?: string | undefined;
};

/** An answer, the cursor of its next page, and the version of what it gives, if that has versions. */
export type Answer<T> = { body: T; next: string | null; tag: string };

let onUnauthenticated = () => {};

/** Sets the function to call when the session has ended. */
export function watchUnauthenticated(listener: () => void): void {
  onUnauthenticated = listener;
}

/** Calls a route. Throws ApiError if the service refuses, TypeError if it is unreachable. */
export async function call<T>(
  method: Method,
  path: string,
  options: Options = {},
): Promise<Answer<T>> {
  const { query, body, signal, token, ifMatch } = options;
  const response = await fetch(addressOf(path, query), {
    method,
    headers: {
      'X-Sensorium-Console': '1',
      ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...(ifMatch === undefined ? {} : { 'If-Match': ifMatch }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal ? { signal } : {}),
  });
  compareClocks(response.headers.get('Date'));
  const answer: unknown = await response.json().catch(() => ({}));
  if (response.ok)
    return {
      body: answer as T,
      next: nextOf(response),
      tag: response.headers.get('ETag') ?? '',
    };
  if (response.status === 401 && path !== '/console/session') throw sessionEnded(answer);
  throw errorOf(response, answer);
}

/** Reads at most `most` lines of a list, then aborts, which stops the service too. `body`: what is asked by POST. */
export async function callLines<T>(
  path: string,
  { query, signal, body }: Pick<Options, 'query' | 'signal' | 'body'>,
  most: number,
): Promise<T[]> {
  const gone = new AbortController();
  const either = AbortSignal.any([gone.signal, ...(signal ? [signal] : [])]);
  const headers = {
    Accept: 'application/x-ndjson',
    ...(body === undefined
      ? {}
      : { 'Content-Type': 'application/json', 'X-Sensorium-Console': '1' }),
  };
  const asked = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  const response = await fetch(addressOf(path, query), { headers, signal: either, ...asked });
  if (!response.ok || !response.body) {
    const answer: unknown = await response.json().catch(() => ({}));
    throw response.status === 401 ? sessionEnded(answer) : errorOf(response, answer);
  }
  const items: T[] = [];
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  while (items.length < most) {
    const { done, value = '' } = await reader.read();
    const lines = (rest + value).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') items.push(JSON.parse(line) as T);
    if (done) return items.slice(0, most);
  }
  await reader.cancel().catch(() => undefined);
  gone.abort();
  return items.slice(0, most);
}

function addressOf(path: string, query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') search.set(name, String(value));
  const text = search.toString();
  return path + (text === '' ? '' : `?${text}`);
}

/** The service says which credential it lacks, which is nothing for people: `problem.session` is shown instead. */
function sessionEnded(answer: unknown): ApiError {
  onUnauthenticated();
  return new ApiError(401, { ...(answer as Problem), type: 'session-ended' }, null);
}

function errorOf(response: Response, answer: unknown): ApiError {
  const seconds = Number(response.headers.get('Retry-After'));
  return new ApiError(response.status, answer as Problem, seconds > 0 ? seconds : null);
}

/** The cursor of the next page. */
function nextOf(response: Response): string | null {
  const url = /<([^>]+)>; rel="next"/.exec(response.headers.get('Link') ?? '')?.[1];
  return url === undefined ? null : new URL(url, location.origin).searchParams.get('cursor');
}
