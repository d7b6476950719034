import { Readable } from 'node:stream';
import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import { DomainError } from '../errors.ts';
import type { BodyReader } from './body.ts';
import { isStorable } from './json.ts';
import { KoaRequestInfo } from './request-info.ts';
import { type Account, type Auth, type Route, Streamed } from './route.ts';

export type RouterDeps = {
  routes: Route[];
  /** Throws `unauthenticated` for a token that opens nothing. */
  authenticate: (token: string) => Promise<Account>;
  readBody: BodyReader;
  /** Aborts when the service stops. */
  stopping: AbortSignal;
};

/** Mounts the routes; what none of them answers is 404, or 405 with `Allow`. */
export function mountRoutes(deps: RouterDeps): Middleware[] {
  const router = new Router();
  for (const route of deps.routes) {
    const path = route.path.replaceAll(/\{(\w+)\}/g, ':$1');
    router.register(path, [route.method], (ctx) => answer(deps, route, ctx));
  }
  return [
    refuseTheRest,
    router.routes() as Middleware,
    // It sets Allow, and 405 or 501 where the path exists and the method does not.
    router.allowedMethods() as Middleware,
  ];
}

const refuseTheRest: Middleware = async (ctx, next) => {
  await next();
  if (ctx['route'] !== undefined) return;
  const paths = (ctx as Context & { matched?: unknown[] }).matched ?? [];
  if (ctx.status === 404 || paths.length === 0) ctx.throw(404, 'There is no such resource');
  if (ctx.status >= 400) ctx.throw(405, 'The resource does not know this method');
  if (ctx.method === 'OPTIONS') ctx.status = 204;
};

async function answer(deps: RouterDeps, route: Route, ctx: Context): Promise<void> {
  ctx['route'] = route.path;
  const account = await identify(deps, route.auth, ctx);
  const body = route.body ? await deps.readBody(ctx) : undefined;
  const result = await route.call({
    params: (ctx as Context & { params: unknown }).params,
    query: route.query ? storableQuery(ctx) : undefined,
    body,
    account,
    request: new KoaRequestInfo(ctx, deps.stopping),
  });
  if (!(result instanceof Streamed)) {
    ctx.type = 'application/json';
    ctx.body = JSON.stringify(result);
    return;
  }
  ctx.type = result.contentType;
  ctx.body = result.source instanceof Readable ? result.source : Readable.from(result.source);
}

async function identify({ authenticate }: RouterDeps, auth: Auth, ctx: Context) {
  if (auth === 'none') return null;
  const token = bearer(ctx);
  return auth === 'token' ? { token } : authenticate(token);
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
