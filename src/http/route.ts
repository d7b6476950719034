import { nextTurn } from '../lib/in-turns.ts';
import type { z } from 'zod';
import { isLarge } from '../lib/check-parts.ts';
import type { Problem } from '../errors.ts';
import { parseListInput } from './parse-list.ts';
import { parseInput, parseParams, refuseLargeInvalid, strictly } from './parse.ts';
import type { ListBody } from './list-body.ts';
import { eachTime, type Once } from './once.ts';
import type { JsonText, Streamed } from './answer.ts';
import type { Account, Auth, RequestInfo, Token } from './request.ts';
import type { Scope } from './scope.ts';

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
  /** Decides who may use a route that needs no login, before its body is read. Throws to refuse. */
  admit?: (request: RequestInfo) => Promise<void>;
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
