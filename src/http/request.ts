import type { Clock, WallMs } from '../lib/clock-readings.ts';

/** Who calls: the account a bearer token belongs to, and the session behind that token, or the API key. */
export type Account = {
  accountId: number;
  accountUuid: string;
  /** Of a key its identifier. */
  sessionId: string;
  key?: KeyRights;
};

/**
 * How a route finds out who asks. `token`: a bearer token is asked for, and judged by the handler itself. `ticket`: the
 * query's `ticket` says for whom it is opened.
 */
export type Auth = 'account' | 'token' | 'ticket' | 'none';

/** What a handler may know of a request beside its parsed input, and headers it may add to the answer. */
export type RequestInfo = {
  requestId: string;
  /** When it arrived, ms since 1970: all that is decided and written because of it has this one time. */
  receivedTs: WallMs;
  /** The service's clock, for the `timestamp` of the answer: specification section 2.1. */
  now: Clock;
  /** The client's address; behind a trusted proxy the one the proxy names. */
  address: string;
  /** Whether the client came over HTTPS, as a trusted proxy says. */
  isHttps: boolean;
  /** Opens what this request was let in with, once more; empty where nothing was asked for. */
  credential: string;
  /** Path and query as they were sent. */
  url: string;
  /** A request header, lower-case name; empty when absent. */
  header(name: string): string;
  /** Best of the offered media types by the Accept header, or false. */
  accepts(...types: string[]): string | false;
  setHeader(name: string, value: string | string[]): void;
  /** The body of a route that `takes` some, decompressed; to be read once, and to its end. */
  openBody(): Body;
  /** Aborts when the client has gone or the service stops. */
  readonly signal: AbortSignal;
};

/** A body that is read as it comes. */
export type Body = {
  /** Its media type: one of those that the route takes. */
  type: string;
  /** Throws `too-slow` where nothing comes for too long, `invalid-input` where it breaks off or is not gzip. */
  chunks: AsyncIterable<Buffer>;
};

/** A bearer token that the handler judges itself. */
export type Token = { token: string };

/** What a key of an account may be used for. */
export const scopes = [
  'devices:read',
  'devices:write',
  'purposes:read',
  'purposes:write',
  'data:read',
  'data:write',
  'alarms:read',
  'alarms:write',
] as const;
export type Scope = (typeof scopes)[number];

/** What a key may do. `labels`: only with devices that have one of these; empty: with all of the account. */
type KeyRights = { keyId: string; scopes: readonly Scope[]; labels: readonly string[] };
