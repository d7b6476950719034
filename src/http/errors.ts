import { STATUS_CODES } from 'node:http';
import {
  DomainError,
  type ErrorCode,
  type Problem,
  type ExceededQuota,
  type RateLimit,
} from '../errors.ts';

/** The one table of what a domain error is to an HTTP client. */
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
  'unsupported-type': 415,
  'key-reused': 422,
  'too-many-requests': 429,
  unavailable: 503,
};

/** RFC 9457's members; `errors` names every problem of an input, `quota` and so on what is used up. */
type ProblemBody = {
  type: string;
  title: string;
  status: number;
  detail: string;
  timestamp: number;
  requestId: string;
  errors?: Problem[];
} & Partial<ExceededQuota>;

export type HttpAnswer = { status: number; headers: Record<string, string>; body: ProblemBody };

/** What an error is answered with. A fault of our own says nothing of itself; the log has it. */
export function toAnswer(error: unknown, requestId: string, nowTs: number): HttpAnswer {
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
  const detail = 'The service could not answer this request. Its log says why, by the requestId.';
  return { status: 500, code: 'internal-error', detail, problems: [] };
}

/** Koa, its router and its body parser throw errors that carry a status of 4xx. */
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
