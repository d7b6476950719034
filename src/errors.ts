/**
 * Domain errors by stable code. They belong to neither HTTP nor MQTT: each protocol maps the codes to its own answers
 * in one table.
 */
export type ErrorCode =
  | 'invalid-input'
  | 'unauthenticated'
  | 'forbidden'
  | 'account-disabled'
  | 'quota-exceeded'
  | 'not-found'
  | 'conflict'
  | 'condition-holds'
  | 'precondition-failed'
  | 'key-reused'
  | 'too-many-requests'
  | 'too-slow'
  | 'unsupported-type'
  | 'unavailable'
  | 'device-gone';

/** One problem of an input. `path` is a JSON Pointer or the name of a query parameter. */
export type Problem = { path: string; message: string };

/** The quota that a request would exceed. */
export type ExceededQuota = { quota: string; limit: number; used: number };

/** A rate that is used up: `limit` per window. The window starts again after `resetSeconds`. */
export type RateLimit = {
  quota: string;
  limit: number;
  windowSeconds: number;
  resetSeconds: number;
};

/** A value that somebody should know before trying again; ms. */
export type SaidValue = { sId: string; val: number; ts: number };

export class DomainError extends Error {
  readonly code: ErrorCode;
  readonly problems: Problem[];
  readonly retryAfterSeconds: number | undefined;
  readonly exceeded: ExceededQuota | undefined;
  readonly rate: RateLimit | undefined;
  readonly values: readonly SaidValue[] | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    options: {
      cause?: unknown;
      problems?: Problem[];
      retryAfterSeconds?: number;
      exceeded?: ExceededQuota;
      rate?: RateLimit;
      values?: readonly SaidValue[];
    } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'DomainError';
    this.code = code;
    this.problems = options.problems ?? [];
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.exceeded = options.exceeded;
    this.rate = options.rate;
    this.values = options.values;
  }
}

/**
 * Whether an answer with this error depends on what was read ("there is no such device", "there is an account with this
 * address"). A client that repeats an unanswered request takes it for the outcome of the first attempt.
 */
export function saysWhatIsThere(error: unknown): boolean {
  return error instanceof DomainError && existence.has(error.code);
}

const existence: ReadonlySet<ErrorCode> = new Set(['not-found', 'device-gone', 'conflict']);
