/**
 * What can go wrong in the domain, by stable code. Neither HTTP nor MQTT: each edge maps codes to
 * its own answers in one table.
 */
export type ErrorCode =
  | 'invalid-input'
  | 'unauthenticated'
  | 'forbidden'
  | 'account-disabled'
  | 'quota-exceeded'
  | 'not-found'
  | 'conflict'
  | 'key-reused'
  | 'too-many-requests'
  | 'too-slow'
  | 'unsupported-type'
  | 'unavailable'
  | 'device-gone';

/** One thing that is wrong with an input; `path` is a JSON Pointer, or a query parameter's name. */
export type Problem = { path: string; message: string };

/** What an account would have more of than it may. */
export type ExceededQuota = { quota: string; limit: number; used: number };

/** A rate that is used up: `limit` in a window, which starts again after `resetSeconds`. */
export type RateLimit = {
  quota: string;
  limit: number;
  windowSeconds: number;
  resetSeconds: number;
};

export class DomainError extends Error {
  readonly code: ErrorCode;
  readonly problems: Problem[];
  readonly retryAfterSeconds: number | undefined;
  readonly exceeded: ExceededQuota | undefined;
  readonly rate: RateLimit | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    options: {
      cause?: unknown;
      problems?: Problem[];
      retryAfterSeconds?: number;
      exceeded?: ExceededQuota;
      rate?: RateLimit;
    } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'DomainError';
    this.code = code;
    this.problems = options.problems ?? [];
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.exceeded = options.exceeded;
    this.rate = options.rate;
  }
}

/**
 * Whether an answer with this error goes by what was read ("there is no such device", "there is an account with this
 * address"): whoever asks again for what was not answered takes it for the outcome of the first attempt.
 */
export function saysWhatIsThere(error: unknown): boolean {
  return error instanceof DomainError && existence.has(error.code);
}

const existence: ReadonlySet<ErrorCode> = new Set(['not-found', 'device-gone', 'conflict']);
