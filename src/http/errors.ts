import { STATUS_CODES } from 'node:http';
import {
  DomainError,
  type ErrorCode,
  type ExceededQuota,
  type Problem,
  type RateLimit,
  type SaidValue,
} from '../errors.ts';
import { pause } from '../lib/wait.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** The HTTP status of each domain error. */
const statusByCode: Record<ErrorCode, number> = {
  'invalid-input': 400,
  unauthenticated: 401,
  forbidden: 403,
  'account-disabled': 403,
  'quota-exceeded': 403,
  'not-found': 404,
  'device-gone': 404,
  'too-slow': 408,
  conflict: 409,
  'condition-holds': 409,
  'precondition-failed': 412,
  'unsupported-type': 415,
  'key-reused': 422,
  'too-many-requests': 429,
  unavailable: 503,
};

/**
 * The members of RFC 9457. `errors` lists all problems of an input; `quota`, `limit` and `used` describe an exceeded
 * quota; `values` are those for which an alarm is not closed.
 */
type ProblemBody = {
  type: string;
  title: string;
  status: number;
  detail: string;
  timestamp: number;
  requestId: string;
  errors?: Problem[];
  values?: readonly SaidValue[];
} & Partial<ExceededQuota>;

type HttpAnswer = { status: number; headers: Record<string, string>; body: ProblemBody };

/** The answer to an error. Internal errors reveal nothing of themselves; the log has the details. */
export function toAnswer(error: unknown, requestId: string, nowTs: WallMs): HttpAnswer {
  const { status, code, detail, problems } = describe(error);
  return {
    status,
    headers: headersOf(error, status),
    body: {
      type: `urn:sensorium:error:${code}`,
      title: STATUS_CODES[status] ?? 'Error',
      status,
      detail,
      timestamp: nowTs,
      requestId,
      ...(problems.length > 0 ? { errors: problems } : {}),
      ...(error instanceof DomainError ? error.exceeded : {}),
      ...(error instanceof DomainError && error.values ? { values: error.values } : {}),
    },
  };
}

type Description = { status: number; code: string; detail: string; problems: Problem[] };

function describe(error: unknown): Description {
  if (error instanceof DomainError) {
    const { code, message: detail, problems } = error;
    return { status: statusByCode[code], code, detail, problems };
  }
  const status = clientFault(error);
  if (status !== null && error instanceof Error) {
    const code = (STATUS_CODES[status] ?? 'error').toLowerCase().replaceAll(' ', '-');
    return { status, code, detail: `${error.message}.`.replace(/\.\.$/, '.'), problems: [] };
  }
  const detail =
    'The service could not answer this request. Its log has the details under this requestId.';
  return { status: 500, code: 'internal-error', detail, problems: [] };
}

/** Koa, its router and its body parser throw errors with a status of 4xx. */
function clientFault(error: unknown): number | null {
  if (!(error instanceof Error) || !('status' in error)) return null;
  const { status } = error;
  return typeof status === 'number' && status >= 400 && status < 500 ? status : null;
}

function headersOf(error: unknown, status: number): Record<string, string> {
  if (status === 401) return { 'WWW-Authenticate': 'Bearer' };
  if (status !== 429 && status !== 503) return {};
  const { retryAfterSeconds, rate } = error instanceof DomainError ? error : {};
  return {
    'Retry-After': String(Math.max(1, Math.ceil(retryAfterSeconds ?? 1))),
    ...(rate ? rateHeaders(rate) : {}),
  };
}

/** draft-ietf-httpapi-ratelimit-headers: sections 3 and 4. */
function rateHeaders({
  quota,
  limit,
  windowSeconds,
  resetSeconds,
}: RateLimit): Record<string, string> {
  return {
    'RateLimit-Policy': `"${quota}";q=${limit};w=${windowSeconds}`,
    RateLimit: `"${quota}";r=0;t=${resetSeconds}`,
  };
}

/** Waits for the first item, so that a failure at the start becomes an error and not half an answer. */
export async function begin<T>(source: AsyncIterable<T>): Promise<AsyncIterable<T>> {
  const iterator = source[Symbol.asyncIterator]();
  const first = await iterator.next();
  return (async function* () {
    try {
      for (let next = first; next.done !== true; next = await iterator.next()) yield next.value;
    } finally {
      await iterator.return?.();
    }
  })();
}

/** Runs work, and delays its refusal. */
type RefuseSlowly = <T>(
  work: () => Promise<T>,
  request: { readonly signal: AbortSignal },
) => Promise<T>;

/** A paused request costs little more than its connection. */
const maxPausing = 2_000;

/**
 * For requests that clients repeat at once: a refusal is cheap, but thousands of them a second would cost other clients
 * more than the refused work. `pauseMs` limits 300 connections to 300 refusals a second.
 */
export function createRefuseSlowly(pauseMs = 1_000): RefuseSlowly {
  let pausing = 0;
  return async (work, request) => {
    try {
      return await work();
    } catch (error) {
      if (!isRefusal(error) || pausing >= maxPausing) throw error;
      pausing += 1;
      // The pause ends when the client leaves or the service stops.
      await pause(pauseMs, request.signal);
      pausing -= 1;
      throw error;
    }
  };
}

function isRefusal(error: unknown): boolean {
  if (!(error instanceof DomainError)) return false;
  return ['too-many-requests', 'unavailable', 'quota-exceeded'].includes(error.code);
}

/** Throws `not-found` with the named devices that are not among those found. */
export function refuseUnknown(uuids: string[], found: { uuid: string }[]): void {
  const known = new Set(found.map(({ uuid }) => uuid));
  const unknown = uuids.filter((uuid) => !known.has(uuid));
  if (unknown.length === 0) return;
  const names = unknown.slice(0, 3).join(', ');
  const more = unknown.length > 3 ? ` and ${unknown.length - 3} more` : '';
  throw new DomainError('not-found', `There is no such device: ${names}${more}.`);
}
