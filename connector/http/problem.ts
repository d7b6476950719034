import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import { dropUnreadBody } from '../../src/lib/request-body.ts';
import { isGone, isUnavailableError } from '../failure.ts';

type ProblemOptions = {
  retryAfterSeconds?: number;
  headers?: Record<string, string>;
  errors?: { path: string; message: string }[];
  cause?: unknown;
};

/** Why a request of a device is not answered with 200, as RFC 9457 has it. `code` is for programs. */
export class HttpProblem extends Error {
  readonly status: number;
  readonly code: string;
  readonly headers: Record<string, string>;
  readonly errors: { path: string; message: string }[] | undefined;

  constructor(status: number, code: string, detail: string, options: ProblemOptions = {}) {
    super(detail, { cause: options.cause });
    const { retryAfterSeconds, headers = {}, errors } = options;
    this.status = status;
    this.code = code;
    this.errors = errors;
    this.headers =
      retryAfterSeconds === undefined
        ? headers
        : { ...headers, 'Retry-After': String(Math.max(1, Math.ceil(retryAfterSeconds))) };
  }
}

const laterSeconds = 5;

/** Nothing is stored, and the same again may be: RFC 9110 section 15.6.4. */
export function comeLater(detail: string, retryAfterSeconds = laterSeconds): HttpProblem {
  return new HttpProblem(503, 'unavailable', detail, { retryAfterSeconds });
}

/** RFC 6585 section 4. */
export function tooMany(detail: string, waitMs: number): HttpProblem {
  const retryAfterSeconds = waitMs / 1_000;
  return new HttpProblem(429, 'too-many-requests', detail, { retryAfterSeconds });
}

export function notFound(detail: string): HttpProblem {
  return new HttpProblem(404, 'not-found', detail);
}

/** RFC 9110 section 11.6.1: each of the two schemes opens. */
export function unauthenticated(): HttpProblem {
  return new HttpProblem(
    401,
    'unauthenticated',
    'Expected Basic (the device uuid and its token) or Bearer (its token) that opens this device.',
    { headers: { 'WWW-Authenticate': 'Basic realm="device", Bearer realm="device"' } },
  );
}

/** What an error is answered with; null where it is a fault of our own. */
export function toProblem(error: unknown): HttpProblem | null {
  if (error instanceof HttpProblem) return error;
  if (isGone(error)) return unauthenticated();
  if (isUnavailableError(error))
    return comeLater('This could not be stored for now: send it again.');
  return null;
}

/** Answers with the problem. What was not read of the body is no next request: the connection ends then. */
export async function sendProblem(
  request: IncomingMessage,
  response: ServerResponse,
  { status, code, message, headers, errors }: HttpProblem,
  timestamp: number,
): Promise<void> {
  const isUnread = !request.complete;
  // The answer must not be lost in a reset: RFC 9112 section 9.6.
  if (isUnread) await dropUnreadBody(request);
  if (response.headersSent || response.destroyed) return;
  const title = STATUS_CODES[status] ?? 'Error';
  const type = `urn:sensorium:error:${code}`;
  const body = JSON.stringify({ type, title, status, detail: message, timestamp, errors });
  response.writeHead(status, {
    'Content-Type': 'application/problem+json',
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    ...headers,
    ...(isUnread ? { Connection: 'close' } : {}),
  });
  response.end(body);
}
