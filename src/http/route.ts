import type { Readable } from 'node:stream';
import type { Clock } from '../lib/clock.ts';
import { nextTurn } from '../lib/in-turns.ts';
import type { z } from 'zod';
import { isLarge } from '../lib/check-parts.ts';
import type { Problem } from '../errors.ts';
import { parseListInput } from './parse-list.ts';
import { parseInput, parseParams, refuseLargeInvalid, strictly } from './parse.ts';
import type { ListBody } from './list-body.ts';
import { eachTime, type Once } from './once.ts';
import type { KeyRights, Scope } from './scope.ts';

/** Who calls: the account a bearer token belongs to, and the session behind that token, or the API key. */
export type Account = {
  accountId: number;
  accountUuid: string;
  /** Of a key its identifier. */
  sessionId: string;
  key?: KeyRights;
};

/** What a handler may know of a request beside its parsed input, and headers it may add to the answer. */
export type RequestInfo = {
  requestId: string;
  /** When it arrived, ms since 1970: all that is decided and written because of it has this one time. */
  receivedTs: number;
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
  setHeader(name: string, value: string): void;
  /** The body of a route that `takes` some, unpacked; to be read once, and to its end. */
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

/**
 * `token`: a bearer token is asked for, and judged by the handler itself. `ticket`: the query's `ticket` says
 * for whom it is opened.
 */
export type Auth = 'account' | 'token' | 'ticket' | 'none';
export type Token = { token: string };
type AccountOf<A extends Auth> = {
  account: Account;
  token: Token;
  ticket: Account;
  none: null;
}[A];
type Parsed<S> = S extends z.ZodType ? z.output<S> : undefined;

type Input<A extends Auth, P, Q, B, W> = {
  params: Parsed<P>;
  query: Parsed<Q>;
  body: Parsed<B>;
  account: AccountOf<A>;
  request: RequestInfo;
  /** What `warnOf` says of the body. */
  warnings: W[];
  /** Makes what the route makes once for each Idempotency-Key, where it takes one. */
  once: Once;
};

/** An answer that is written as it comes: CSV, server-sent events. Made by `stream()`. */
export class Streamed {
  readonly contentType: string;
  readonly source: Readable | AsyncIterable<string | Uint8Array>;
  readonly status: number;

  constructor(
    contentType: string,
    source: Readable | AsyncIterable<string | Uint8Array>,
    status: number,
  ) {
    this.contentType = contentType;
    this.source = source;
    this.status = status;
  }
}

/** An answer that is JSON text already: large, and stored as it is told. Made by `jsonText()`. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Answers with JSON that was written before, instead of writing it anew with each request. */
export function jsonText(text: string): JsonText {
  return new JsonText(text);
}

/** Answers with a stream; it is destroyed when the client goes away. */
export function stream(
  contentType: string,
  source: Readable | AsyncIterable<string | Uint8Array>,
  status = 200,
): Streamed {
  return new Streamed(contentType, source, status);
}

type Method = 'get' | 'post' | 'put' | 'delete';

type Documentation = {
  /** What generated clients call it, and its schemas after; each route of the reference has its own. */
  name?: string;
  method: Method;
  /** Path as OpenAPI writes it: `/v2/devices/{deviceAuthUuid}`. */
  path: string;
  summary: string;
  description?: string;
  /** Group in the reference. */
  tag: string;
  /** Statuses beyond 200 the handler itself gives rise to; what every route can answer is added. */
  errors: readonly number[];
  /** Response headers that are documented, by name. */
  responseHeaders?: Record<string, string>;
  /** Media types of streamed answers, beside (or, with `json: false`, instead of) JSON. */
  streams?: { types: string[]; json?: boolean };
  /** Media types of a body that the handler reads as it comes, of any size, with an example of each. */
  takes?: Record<string, string>;
  /** Its 503 is an answer like any other, given every few seconds: it is not logged. */
  quiet?: boolean;
  /** Its body is a form of a page of this service; JSON otherwise. */
  isForm?: boolean;
  /** Its body is a list, whose elements are read and checked one by one; `body` is the schema of the whole. */
  listBody?: ListBody;
  /** Leave it out of the reference. */
  hidden?: boolean;
  /** What a request takes in memory at most, in bytes, its body left out; what most take if absent. */
  room?: number;
  /** Its answer does not end: what it takes has a bound of its own, and the request's room is left. */
  isEndless?: boolean;
  /** Its answer has passwords, tokens or keys in it: for everybody, or for sessions and not for API keys. */
  secrets?: 'always' | 'sessions';
  /** Answered also when the service is short of memory, and takes next to none. */
  isVital?: boolean;
  /** With which scope an API key opens it; absent: none does. */
  scope?: Scope;
  /** No device by itself can be told apart in it: a key that is confined to labels does not open it. */
  isOfWholeAccount?: boolean;
  /** It makes something, and takes an Idempotency-Key: its handler makes it by `once`. */
  takesKey?: boolean;
};

type Definition<
  A extends Auth,
  P extends z.ZodType | undefined,
  Q extends z.ZodType | undefined,
  B extends z.ZodType | undefined,
  R extends z.ZodType,
  W extends Problem,
> = Documentation & {
  auth: A;
  /** What does not match is answered 404: there is no such thing. */
  params?: P;
  query?: Q;
  body?: B;
  /** A body that works as it is, but for identifiers and tokens: the reference's, and each is sent in a test. */
  example?: B extends z.ZodType ? z.input<B> : never;
  response: R;
  /** What there is to say of a body as it was sent, and read if it is valid; with `?strict=true` it is 400. */
  warnOf?: (schema: z.ZodType, sent: unknown, body?: Parsed<B>) => W[];
  handler: (input: Input<A, P, Q, B, W>) => Promise<z.input<R> | Streamed | JsonText>;
};

/** What reaches a route unparsed. */
type RawInput = {
  params: unknown;
  query: unknown;
  body: unknown;
  account: Account | Token | null;
  request: RequestInfo;
  once?: Once | undefined;
};

/** A route with its types worn off, as the application and the reference take it. */
export type Route = Documentation & {
  auth: Auth;
  params?: z.ZodType;
  query?: z.ZodType;
  body?: z.ZodType;
  example?: unknown;
  response: z.ZodType;
  /** Parses, then handles. Throws `invalid-input` with every problem, or `not-found` for a wrong path parameter. */
  call(raw: RawInput): Promise<unknown>;
};

/** One operation: what it takes and gives, in the schemas that validate it and document it. */
export function defineRoute<
  A extends Auth,
  R extends z.ZodType,
  P extends z.ZodType | undefined = undefined,
  Q extends z.ZodType | undefined = undefined,
  B extends z.ZodType | undefined = undefined,
  W extends Problem = Problem,
>(definition: Definition<A, P, Q, B, R, W>): Route {
  const { handler, params, body, warnOf, ...rest } = definition;
  const query = warnOf ? strictly(definition.query) : definition.query;
  return {
    ...rest,
    params,
    query,
    body,
    call: async (raw) => {
      const parsedParams = parseParams(params, raw.params) as Parsed<P>;
      await refuseLargeInvalid(body, raw.body);
      const warn = (read: unknown) => (body && warnOf?.(body, raw.body, read as Parsed<B>)) ?? [];
      const { listBody } = rest;
      const parsed = listBody
        ? await parseListInput({ query, body, listBody }, raw, warnOf)
        : parseInput({ query, body }, raw, warn);
      const input = parsed as Pick<Input<A, P, Q, B, W>, 'query' | 'body' | 'warnings'>;
      if (isLarge(raw.body)) await nextTurn();
      const { request, once = eachTime } = raw;
      return handler({
        params: parsedParams,
        ...input,
        account: raw.account as AccountOf<A>,
        request,
        once,
      });
    },
  };
}
