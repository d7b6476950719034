import type { Clock, WallMs } from '../lib/clock-readings.ts';

/** The caller: the account that a bearer token belongs to, with the session or the API key behind the token. */
export type Account = {
  accountId: number;
  accountUuid: string;
  /** For an API key, the key's identifier. */
  sessionId: string;
  key?: KeyRights;
};

/**
 * How a route authenticates its caller. `token`: the handler itself checks the bearer token. `ticket`: the query
 * parameter `ticket` names the caller.
 */
export type Auth = 'account' | 'token' | 'ticket' | 'none';

/** What a handler may know about a request besides its parsed input, and the headers that it may add to the answer. */
export type RequestInfo = {
  requestId: string;
  /** When the request arrived, ms since 1970. Everything decided or written for this request uses this one time. */
  receivedTs: WallMs;
  /** The service's clock, for the `timestamp` of the answer: specification section 2.1. */
  now: Clock;
  /** The client's address; behind a trusted proxy, the address that the proxy names. */
  address: string;
  /** Whether the client used HTTPS, as a trusted proxy reports. */
  isHttps: boolean;
  /**
   * The token or ticket that authenticated this request, for authenticating again; empty if the route required none.
   */
  credential: string;
  /** Path and query as sent. */
  url: string;
  /** A request header, lower-case name; empty when absent. */
  header(name: string): string;
  /** The best of these media types by the Accept header, or false. */
  accepts(...types: string[]): string | false;
  setHeader(name: string, value: string | string[]): void;
  /** The decompressed body of a route with `takes`. Read it once, to its end. */
  openBody(): Body;
  /** Aborts when the client has gone or the service stops. */
  readonly signal: AbortSignal;
};

/** A body that is read as it arrives. */
export type Body = {
  /** Its media type, one of the route's `takes`. */
  type: string;
  /** Throws `too-slow` if nothing arrives for too long, `invalid-input` if the body breaks off or is not gzip. */
  chunks: AsyncIterable<Buffer>;
};

/** A bearer token that the handler checks itself. */
export type Token = { token: string };

/** The scopes an API key can have. */
export const scopes = [
  'devices:read',
  'devices:write',
  'purposes:read',
  'purposes:write',
  'data:read',
  'data:write',
  'alarms:read',
  'alarms:write',
  'commands:read',
  'commands:write',
] as const;
export type Scope = (typeof scopes)[number];

/**
 * What an API key may do. `labels`: only with devices that have one of these; empty: with all devices of the account.
 */
type KeyRights = { keyId: string; scopes: readonly Scope[]; labels: readonly string[] };
