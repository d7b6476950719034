import { z } from 'zod';
import { DomainError, type Problem } from '../errors.ts';
import { yieldToEventLoop } from '../lib/event-loop.ts';
import { jsonPointer } from '../lib/json.ts';
import { partsOf } from '../lib/schema-parts.ts';
import { checkInParts, describeIssue, isLarge } from '../lib/schema.ts';
import { eachTime, type JsonText, type Once, type Streamed } from './answer.ts';
import type { ListBody } from './body.ts';
import type { Account, Auth, RequestInfo, Scope, Token } from './request.ts';
import { describeAs } from './schema.ts';

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
  /** Warnings of `warnOf` about the body. */
  warnings: W[];
  /** Runs what the route creates once per Idempotency-Key, if the route takes one. */
  once: Once;
};

type Method = 'get' | 'post' | 'put' | 'delete';

type Documentation = {
  /**
   * Its name in generated clients and the stem of its schemas' names. Each route in the reference has one of its own.
   */
  name?: string;
  method: Method;
  /** Path as OpenAPI writes it: `/v2/devices/{deviceAuthUuid}`. */
  path: string;
  summary: string;
  description?: string;
  /** Group in the reference. */
  tag: string;
  /** Error statuses that the handler itself causes. Those that every route can answer are added. */
  errors: readonly number[];
  /** Documented response headers, by name. */
  responseHeaders?: Record<string, string>;
  /**
   * Media types of streamed answers, in addition to JSON, or instead of it with `json: false`. `messages`: the schema
   * of each message, if it is another one than the response's.
   */
  streams?: { types: string[]; json?: boolean; messages?: z.ZodType };
  /** Media types of a body of any size that the handler reads as a stream, with an example of each. */
  takes?: Record<string, string>;
  /** Its 503 is a normal answer, given every few seconds, so it is not logged. */
  quiet?: boolean;
  /** Its body is a form from one of this service's own pages, not JSON. */
  isForm?: boolean;
  /** Its body is a list, whose elements are read and checked one by one. `body` is the schema of the whole. */
  listBody?: ListBody;
  /** Decides who may use a route that needs no login, before the body is read. Throws to refuse. */
  admit?: (request: RequestInfo) => Promise<void>;
  /** Leave it out of the reference. */
  hidden?: boolean;
  /** The most memory that a request takes without its body, in bytes; the usual amount if absent. */
  answerBytes?: number;
  /** Its answer does not end. The stream has a memory limit of its own, so the request gives back what it reserved. */
  isEndless?: boolean;
  /** Its answer contains passwords, tokens or keys: for every caller, or for sessions but not for API keys. */
  secrets?: 'always' | 'sessions';
  /** Answered even when the service is short of memory; takes almost none. */
  isVital?: boolean;
  /** The scope that an API key needs; absent: no API key may use the route. */
  scope?: Scope;
  /** Concerns the account as a whole, not single devices, so keys restricted to labels may not use it. */
  isOfWholeAccount?: boolean;
  /**
   * Creates something and takes an Idempotency-Key: the handler creates it through `once`. A streamed answer is not
   * kept, and the key has no effect.
   */
  takesKey?: boolean;
  /** What it changes has an entity tag: the handler compares it with `If-Match`. */
  hasTag?: boolean;
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
  /** A path that does not match is answered 404: no such resource. */
  params?: P;
  query?: Q;
  /** Filters of a valid query that exclude each other, by their names. */
  findContradictions?: (query: Parsed<Q>) => Problem[];
  body?: B;
  /**
   * A body that works as it is, except for identifiers and tokens. The reference shows it, and a test sends each one.
   */
  example?: B extends z.ZodType ? z.input<B> : never;
  response: R;
  /**
   * Warnings about a body as it was sent, with the parsed body if it is valid. With `?strict=true` they become a 400.
   */
  warnOf?: (schema: z.ZodType, sent: unknown, body?: Parsed<B>) => W[];
  handler: (input: Input<A, P, Q, B, W>) => Promise<z.input<R> | Streamed | JsonText>;
};

/** A route's input before it is parsed. */
type RawInput = {
  params: unknown;
  query: unknown;
  body: unknown;
  account: Account | Token | null;
  request: RequestInfo;
  once?: Once | undefined;
};

/** A route without its type parameters, for the application and the reference. */
export type Route = Documentation & {
  auth: Auth;
  params?: z.ZodType;
  query?: z.ZodType;
  /** Filters of a valid query that exclude each other, by their names. */
  findContradictions?(query: unknown): Problem[];
  body?: z.ZodType;
  example?: unknown;
  response: z.ZodType;
  /** Parses, then handles. Throws `invalid-input` with all problems, or `not-found` for a wrong path parameter. */
  call(raw: RawInput): Promise<unknown>;
};

/** One operation. The schemas of its input and output both validate and document it. */
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
      if (isLarge(raw.body)) await yieldToEventLoop();
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

/** A path parameter that cannot name anything is answered 404, like a resource that does not exist. */
function parseParams(schema: z.ZodType | undefined, raw: unknown): unknown {
  if (!schema) return undefined;
  const result = schema.safeParse(raw);
  if (!result.success) throw new DomainError('not-found', 'There is no such resource.');
  return result.data;
}

const strict = z
  .enum(['true', 'false'], 'expected true or false')
  .optional()
  .meta({
    override: ({ jsonSchema }: { jsonSchema: object }) => {
      describeAs(jsonSchema, {
        type: 'boolean',
        description: 'Whether unknown members, which otherwise cause a warning, are refused.',
      });
    },
  });

/** Adds `strict` to the query of a route that has warnings. */
function strictly(query: z.ZodType | undefined): z.ZodType {
  return query instanceof z.ZodObject ? query.extend({ strict }) : z.object({ strict });
}

/**
 * Parses query and body, and throws all problems of both together. If the body is invalid, or with `?strict=true`, the
 * warnings are among them.
 */
function parseInput(
  schemas: { query?: z.ZodType | undefined; body?: z.ZodType | undefined },
  raw: { query: unknown; body: unknown },
  warn: (body: unknown) => Problem[] = () => [],
): { query: unknown; body: unknown; warnings: Problem[] } {
  const query = schemas.query?.safeParse(raw.query);
  const body = schemas.body?.safeParse(raw.body);
  const warnings = warn(body?.data);
  // An unknown name is usually a misspelling of one that is missing.
  const isTold = body?.success === false || isStrictQuery(query?.data);
  const problems = [
    ...problemsOf(query, (path) => String(path[0] ?? '')),
    ...problemsOf(body, jsonPointer),
    ...(isTold ? warnings.map(({ path, message }) => ({ path, message })) : []),
  ];
  if (problems.length > 0) throw invalid(problems);
  return { query: query?.data, body: body?.data, warnings };
}

const isStrictQuery = (query: unknown): boolean =>
  typeof query === 'object' && query !== null && 'strict' in query && query.strict === 'true';

// Keeps the list of errors short when a large array has many invalid elements.
export const maxProblems = 100;
/** Members checked before the loop yields to other requests. */
const membersAtOnce = 2_000;

/**
 * Checks a large body piece by piece, and throws as soon as it has found as many problems as an answer lists.
 * `parseInput` then meets few problems, and takes a few milliseconds.
 */
async function refuseLargeInvalid(schema: z.ZodType | undefined, body: unknown): Promise<void> {
  if (!schema || !isLarge(body)) return;
  const problems: Problem[] = [];
  let members = 0;
  for (const part of checkInParts(schema, body)) {
    for (const { path, message } of part.problems)
      problems.push({ path: jsonPointer(path), message });
    if (problems.length >= maxProblems) throw invalid(problems);
    members += part.size;
    if (members < membersAtOnce) continue;
    members = 0;
    await yieldToEventLoop();
  }
  await yieldToEventLoop();
}

/** An `invalid-input` error with the first hundred problems; its text says if there are more. */
export function invalid(problems: Problem[]): DomainError {
  const detail =
    problems.length < maxProblems
      ? 'The request is not valid.'
      : `The request is not valid. The first ${maxProblems} problems are listed.`;
  return new DomainError('invalid-input', detail, { problems: problems.slice(0, maxProblems) });
}

function problemsOf(
  result: z.ZodSafeParseResult<unknown> | undefined,
  write: (path: readonly PropertyKey[]) => string,
): Problem[] {
  const issues = result?.error?.issues ?? [];
  return issues
    .slice(0, maxProblems)
    .map((issue) => ({ path: write(issue.path), message: describeIssue(issue.message) }));
}

type ListSchemas = {
  query?: z.ZodType | undefined;
  body?: z.ZodType | undefined;
  listBody: ListBody;
};

type WarnOf = ((schema: z.ZodType, sent: unknown, read?: never) => Problem[]) | undefined;

/** Elements parsed before the loop yields to other requests. */
const elementsAtOnce = 20;

/**
 * Parses a query, and a body that is a list, element by element. Throws all problems, at most a hundred. The paths of
 * problems and warnings contain the element's index.
 */
async function parseListInput(
  { query, body, listBody: { member } }: ListSchemas,
  raw: { query: unknown; body: unknown },
  warnOf: WarnOf,
): Promise<{ query: unknown; body: unknown; warnings: Problem[] }> {
  const parsedQuery = query?.safeParse(raw.query);
  const problems = problemsOf(parsedQuery, (path) => String(path[0] ?? ''));
  const element = elementOf(body, member);
  const sent = listOf(raw.body, member);
  if (sent.length === 0) problems.push({ path: `/${member}`, message: 'expected at least one' });
  const list: unknown[] = [];
  const warnings: Problem[] = [];
  for (const [index, one] of sent.entries()) {
    if (problems.length >= maxProblems) break;
    if (index > 0 && index % elementsAtOnce === 0) await yieldToEventLoop();
    const at = `/${member}/${index}`;
    const read = element.safeParse(one);
    problems.push(...problemsOf(read, (path) => at + jsonPointer(path)));
    list.push(read.data);
    if (warnings.length >= maxProblems) continue;
    for (const said of warnOf?.(element, one, read.data as never) ?? [])
      warnings.push({ ...said, path: at + said.path });
  }
  if (isStrictQuery(parsedQuery?.data))
    problems.push(...warnings.map(({ path, message }) => ({ path, message })));
  if (problems.length > 0) throw invalid(problems);
  return {
    query: parsedQuery?.data,
    body: { [member]: list },
    warnings: warnings.slice(0, maxProblems),
  };
}

function elementOf(body: z.ZodType | undefined, member: string): z.ZodType {
  const whole = body && partsOf(body);
  const list = whole?.kind === 'object' ? whole.members[member] : undefined;
  const parts = list && partsOf(list);
  if (parts?.kind !== 'array') throw new Error(`The schema of the body has no list ${member}.`);
  return parts.element as z.ZodType;
}

function listOf(body: unknown, member: string): unknown[] {
  const list = (body as Record<string, unknown> | undefined)?.[member];
  return Array.isArray(list) ? list : [];
}
