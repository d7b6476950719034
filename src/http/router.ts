import { Readable } from 'node:stream';
import findMyWay from 'find-my-way';
import type { Context, Middleware } from 'koa';
import { DomainError } from '../errors.ts';
import type { BodyReader } from './body.ts';
import { isStorable } from './json.ts';
import { applyRateLimit, type Allowance } from './rate-limit.ts';
import { KoaRequestInfo } from './request-info.ts';
import type { TakeRoom } from './room.ts';
import { type Account, type Auth, type Method, type Route, JsonText, Streamed } from './route.ts';

export type RouterDeps = {
  routes: Route[];
  /** Throws `unauthenticated` for a token that opens nothing. */
  authenticate: (token: string) => Promise<Account>;
  /** Counts a request of an account; nothing is counted without it. */
  takeRequest?: ((accountId: number) => Allowance) | undefined;
  readBody: BodyReader;
  takeRoom: TakeRoom;
  /** Aborts when the service stops. */
  stopping: AbortSignal;
};

/** An answer as text, and as the bytes that are sent. */
const sentFactor = 3;

type Table = findMyWay.Instance<findMyWay.HTTPVersion.V1>;

/** Answers the routes; what none of them answers is 404, or 405 with `Allow`. */
export function mountRoutes(deps: RouterDeps): Middleware {
  const table = findMyWay({ caseSensitive: false, ignoreTrailingSlash: true });
  for (const route of deps.routes) {
    const path = route.path.replaceAll(/\{(\w+)\}/g, ':$1');
    table.on(verbs[route.method], path, unused, route);
  }
  return async (ctx) => {
    const found = table.find(ctx.method as findMyWay.HTTPMethod, ctx.path);
    if (found) await answer(deps, found.store as Route, found.params, ctx);
    else refuse(table, ctx);
  };
}

/** RFC 9110 section 9.3.2: HEAD is GET without its content. */
const verbs: Record<Method, findMyWay.HTTPMethod[]> = {
  get: ['GET', 'HEAD'],
  post: ['POST'],
  put: ['PUT'],
  delete: ['DELETE'],
};

/** The table is asked for the route, and calls nobody. */
const unused = () => undefined;

function refuse(table: Table, ctx: Context): void {
  const allowed = Object.values(verbs)
    .flat()
    .filter((verb) => table.find(verb, ctx.path) !== null);
  if (allowed.length === 0) ctx.throw(404, 'There is no such resource');
  ctx.set('Allow', allowed.join(', '));
  if (ctx.method !== 'OPTIONS') ctx.throw(405, 'The resource does not know this method');
  ctx.status = 204;
}

async function answer(
  deps: RouterDeps,
  route: Route,
  params: unknown,
  ctx: Context,
): Promise<void> {
  ctx['route'] = route.path;
  ctx['quiet'] = route.quiet;
  const account = await identify(deps, route.auth, ctx);
  const place = await deps.takeRoom(ctx, route, account);
  const body = route.body ? await deps.readBody(ctx) : undefined;
  const result = await route.call({
    params,
    query: route.query ? storableQuery(ctx) : undefined,
    body,
    account,
    request: new KoaRequestInfo(ctx, deps.stopping),
  });
  if (!(result instanceof Streamed)) {
    ctx.type = 'application/json';
    const text = result instanceof JsonText ? result.text : JSON.stringify(result);
    place.resize(text.length * sentFactor);
    ctx.body = text;
    return;
  }
  if (route.isEndless) place.leave();
  ctx.type = result.contentType;
  ctx.body = result.source instanceof Readable ? result.source : Readable.from(result.source);
}

async function identify({ authenticate, takeRequest }: RouterDeps, auth: Auth, ctx: Context) {
  if (auth === 'none') return null;
  const token = bearer(ctx);
  if (auth === 'token') return { token };
  const account = await authenticate(token);
  if (takeRequest) applyRateLimit(ctx, takeRequest(account.accountId));
  return account;
}

/** RFC 6750 section 2.1. Throws `unauthenticated`. */
function bearer(ctx: Context): string {
  const token = /^Bearer +([\w.~+/-]+=*) *$/i.exec(ctx.get('authorization'))?.[1];
  if (token === undefined) throw new DomainError('unauthenticated', 'A bearer token is needed.');
  return token;
}

/** The query as an object; a parameter given twice is an array, which no schema takes. */
function storableQuery(ctx: Context): unknown {
  const problems = Object.entries(ctx.query)
    .filter(([, value]) => !isStorable(String(value)))
    .map(([path]) => ({ path, message: 'is not valid text' }));
  if (problems.length === 0) return { ...ctx.query };
  throw new DomainError('invalid-input', 'The request is not valid.', { problems });
}
