import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline, Readable } from 'node:stream';
import { promisify } from 'node:util';
import { constants, createGzip, gzip, type ZlibOptions } from 'node:zlib';
import Router from '@koa/router';
import type Koa from 'koa';
import type { Context, Middleware } from 'koa';
import { DomainError, saysWhatIsThere } from '../errors.ts';
import {
  type Allowance,
  applyRateLimit,
  fingerprintOf,
  JsonText,
  jsonText,
  type Once,
  readKey,
  type RunOnce,
  Streamed,
} from './answer.ts';
import { acceptBody, type BodyReader, KoaRequestInfo } from './body.ts';
import type { ReserveMemory } from './memory.ts';
import { readQuery } from './query.ts';
import type { ConnectionPlaces } from '../lib/connection-places.ts';
import type { Account, Token } from './request.ts';
import type { Route } from './route.ts';

export type RouterDeps = {
  routes: Route[];
  /** Throws `unauthenticated` for an invalid token. */
  authenticate: (token: string) => Promise<Account>;
  /** The same for a ticket in the query; absent: no route takes tickets. */
  authenticateTicket?: ((ticket: string) => Promise<Account>) | undefined;
  /** Learns which connections have logged in. */
  places?: Pick<ConnectionPlaces, 'know'> | undefined;
  /** The token in the request's cookie; null if there is none. Throws `forbidden` if the cookie must not count here. */
  readCookie?:
    ((request: { method: string; header(name: string): string }) => string | null) | undefined;
  /** Throws `not-found` unless the device has one of the labels to which the API key is restricted. */
  checkReach?:
    | ((accountId: number, deviceUuid: string, labels: readonly string[]) => Promise<void>)
    | undefined;
  /** Counts a request of an account; absent: requests are not counted. */
  takeRequest?: ((accountId: number) => Allowance) | undefined;
  /**
   * Attributes the work of a request to its account, which bounds its share of the database; absent: nothing is
   * attributed.
   */
  beginWork?: ((accountId: number) => Work) | undefined;
  /** Resolves when what was read is as safe as a commit (`Database.confirmReads`); absent: it always is. */
  confirmReads?: (() => Promise<void>) | undefined;
  /** Answers requests with an Idempotency-Key; absent: the key is ignored. */
  runOnce?: RunOnce | undefined;
  readBody: BodyReader;
  reserveMemory: ReserveMemory;
  /** Requests whose bodies may take as long as they keep arriving. */
  ownPace: WeakSet<IncomingMessage>;
  /** How long such a body may pause; default 60 s. */
  bodyStallMs?: number | undefined;
  /** Aborts when the service stops. */
  stopping: AbortSignal;
};

/** A request's work for an account: everything that `run` starts, until `end`. */
type Work = { run<T>(work: () => Promise<T>): Promise<T>; end(): void };

/** An answer is in memory as text and as the bytes that are sent. */
const sentFactor = 3;

/** Answers the routes. Anything else is answered 404, or 405 with `Allow`. */
export function mountRoutes(app: Koa, deps: RouterDeps): void {
  const router = new Router();
  for (const route of deps.routes.toSorted(writtenOutFirst)) {
    const path = route.path.replaceAll(/\{(\w+)\}/g, ':$1');
    router[route.method](path, (ctx) =>
      confirmed(route, () => answer(deps, route, ctx.params, ctx), deps),
    );
  }
  app.use(router.routes());
  app.use((ctx) => refuse(router, ctx));
}

/**
 * The first matching route wins, so `/devices/profile` goes before `/devices/{deviceAuthUuid}`, and `/console/` before
 * `/console`, which matches both.
 */
function writtenOutFirst(a: Route, b: Route): number {
  // In ASCII, `{` comes after every letter and digit, and `~` after it.
  return `${a.path}~` < `${b.path}~` ? -1 : 1;
}

function refuse(router: Router, ctx: Context): void {
  const allowed = isWellFormed(ctx.path) ? methodsOf(router, ctx) : [];
  if (allowed.length === 0) ctx.throw(404, 'There is no such resource');
  ctx.set('Allow', allowed.join(', '));
  if (ctx.method !== 'OPTIONS') ctx.throw(405, 'This resource does not support this method');
  ctx.status = 204;
}

/** Includes HEAD where there is GET (RFC 9110 section 9.3.2). */
function methodsOf(router: Router, { path, method }: Context): string[] {
  const methods = router.match(path, method).path.flatMap((layer) => layer.methods);
  return [...new Set(methods)].sort();
}

function isWellFormed(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

async function answer(
  deps: RouterDeps,
  route: Route,
  params: unknown,
  ctx: Context,
): Promise<void> {
  ctx['route'] = route.path;
  ctx['quiet'] = route.quiet;
  const caller = await identify(deps, route, ctx);
  const { account } = caller;
  const request = { params, ...caller };
  if (!account || !('accountId' in account) || !deps.beginWork)
    return answerTo(deps, route, request, ctx);
  const work = deps.beginWork(account.accountId);
  const isSent = new Promise<void>((resolve) => ctx.res.once('close', resolve));
  // Even if the client left long ago, the work that it started belongs to its account.
  return work
    .run(() => answerTo(deps, route, request, ctx))
    .finally(() => void isSent.then(work.end));
}

type Caller = { account: Account | Token | null; credential: string };

async function answerTo(
  deps: RouterDeps,
  route: Route,
  { params, account, credential }: Caller & { params: unknown },
  ctx: Context,
): Promise<void> {
  if (account && 'accountId' in account) await checkLabels(deps, account, params);
  if (route.method !== 'get' && !route.hasTag) checkCondition(ctx);
  const request = new KoaRequestInfo(ctx, deps.stopping, credential, deps.bodyStallMs);
  await route.admit?.(request);
  const place = await deps.reserveMemory(ctx, route, account);
  if (route.takes) acceptBody(ctx, Object.keys(route.takes), deps.ownPace);
  const body = route.body ? await deps.readBody(ctx, route) : undefined;
  const query = readQuery(ctx, route);
  const call = (once?: Once) => route.call({ params, query, body, account, request, once });
  const isStreamed = route.streams?.types.includes(String(preferred(route, request))) === true;
  const key = route.takesKey && deps.runOnce && !isStreamed ? readKey(ctx) : null;
  const result =
    key !== null && deps.runOnce && account && 'accountId' in account
      ? await runKeyed(deps.runOnce, { ctx, account, key, request }, call)
      : await call();
  allowCompression(ctx, route, account && 'accountId' in account ? account : null);
  if (!(result instanceof Streamed)) {
    ctx.type = 'application/json';
    const text = result instanceof JsonText ? result.text : JSON.stringify(result);
    place.resize(text.length * sentFactor);
    ctx.body = text;
    return;
  }
  if (route.isEndless) {
    place.leave();
    endWithClient(ctx.req.socket);
  }
  ctx.status = result.status;
  ctx.type = result.contentType;
  ctx.body =
    result.source instanceof Readable ? result.source : Readable.from(readHere(result.source));
}

/**
 * RFC 9110 section 13.1.1: most resources have no entity tags, so no tag matches, and a change under a condition must
 * not happen. Throws 412. `*` holds for whatever exists.
 */
function checkCondition(ctx: Context): void {
  const tags = ctx.get('if-match').trim();
  if (tags === '' || tags === '*') return;
  ctx.throw(412, 'This resource has no entity tag, so only If-Match: * can hold');
}

/** Produces each piece in the request's async context, whoever reads it. */
function readHere<T>(source: AsyncIterable<T>): AsyncIterable<T> {
  const here = AsyncLocalStorage.snapshot();
  return {
    [Symbol.asyncIterator]() {
      const iterator = here(() => source[Symbol.asyncIterator]());
      return {
        next: () => here(() => iterator.next()),
        return: async (value) =>
          (await here(() => iterator.return?.(value))) ?? { done: true, value: undefined },
      };
    },
  };
}

/**
 * Runs a request that may change something. An answer that says that there was nothing to change ("there is no such
 * device", "there is an account with this address", a second DELETE) depends on what was read, and its sender takes it
 * for the outcome of an earlier attempt. Such an answer waits until a failover cannot undo what was read. So does a 401
 * to a DELETE, because an earlier attempt may have removed the very login that it used.
 */
async function confirmed(
  { method }: Route,
  work: () => Promise<void>,
  { confirmReads }: RouterDeps,
): Promise<void> {
  if (method === 'get') return work();
  const isRemoval = method === 'delete';
  try {
    await work();
  } catch (error) {
    if (saysWhatIsThere(error) || (isRemoval && isUnauthenticated(error))) await confirmReads?.();
    throw error;
  }
  if (isRemoval) await confirmReads?.();
}

const isUnauthenticated = (error: unknown) =>
  error instanceof DomainError && error.code === 'unauthenticated';

/**
 * Ends an endless answer when the client ends its side: a client that has only half-closed looks like one that has
 * gone.
 */
function endWithClient(socket: Socket): void {
  const end = () => socket.destroy();
  if (socket.readableEnded) end();
  else socket.once('end', end);
}

/** The media type of the answer that the client prefers; false: none. */
const preferred = ({ streams }: Route, request: KoaRequestInfo) =>
  request.accepts('application/json', ...(streams?.types ?? []));

type Keyed = { ctx: Context; account: Account; key: string; request: KoaRequestInfo };

async function runKeyed(
  runOnce: RunOnce,
  { ctx, account, key, request }: Keyed,
  call: (once: Once) => Promise<unknown>,
): Promise<JsonText> {
  const { receivedTs, signal } = request;
  const keyed = { account, key, fingerprint: await fingerprintOf(ctx), receivedTs, signal };
  return jsonText(await runOnce(keyed, async (once) => JSON.stringify(await call(once))));
}

async function identify(deps: RouterDeps, route: Route, ctx: Context): Promise<Caller> {
  if (route.auth === 'none') return { account: null, credential: '' };
  if (route.auth === 'token') return { account: { token: bearer(ctx) }, credential: '' };
  const credential = route.auth === 'ticket' ? ticketOf(ctx) : tokenOf(ctx, deps);
  const account =
    route.auth === 'ticket'
      ? await deps.authenticateTicket?.(credential)
      : await deps.authenticate(credential);
  if (!account) throw new DomainError('unauthenticated', 'A ticket does not open this route.');
  deps.places?.know(ctx.req.socket);
  if (deps.takeRequest) applyRateLimit(ctx, deps.takeRequest(account.accountId));
  checkRights(account, route);
  return { account, credential };
}

async function checkLabels(
  { checkReach }: RouterDeps,
  account: Account,
  params: unknown,
): Promise<void> {
  const labels = labelsOf(account);
  const { deviceAuthUuid } = params as { deviceAuthUuid?: string };
  if (labels && deviceAuthUuid !== undefined)
    await checkReach?.(account.accountId, deviceAuthUuid, labels);
}

/** A bearer token takes precedence over any cookie that a browser adds. */
function tokenOf(ctx: Context, { readCookie }: RouterDeps): string {
  const ofCookie = ctx.get('authorization') === '' ? readCookie?.(cookieRequest(ctx)) : null;
  return ofCookie ?? bearer(ctx);
}

const cookieRequest = (ctx: Context) => ({
  method: ctx.method,
  header: (name: string) => ctx.get(name),
});

/** RFC 6750 section 2.1. Throws `unauthenticated`. */
function bearer(ctx: Context): string {
  const token = /^Bearer +([\w.~+/-]+=*) *$/i.exec(ctx.get('authorization'))?.[1];
  if (token === undefined) throw new DomainError('unauthenticated', 'A bearer token is required.');
  return token;
}

/** Throws `unauthenticated`. */
function ticketOf({ query: { ticket } }: Context): string {
  if (typeof ticket === 'string') return ticket;
  throw new DomainError('unauthenticated', 'A ticket is required: POST /v2/streams.');
}

export type CompressOptions = {
  /** Answers compressed at the same time, 256 KiB each; default 32. Others are then sent uncompressed. */
  maxAtOnce?: number;
};

const gzipped = promisify<string, ZlibOptions, Buffer>(gzip);

/** An answer that fits into one packet arrives no sooner when it is smaller. */
const leastBytes = 1_400;
/** The fastest level: rows repeat themselves so much that more effort saves little. */
const options: ZlibOptions = { level: 1 };
/** Flushes each piece: gzip would otherwise delay megabytes of repetitive rows. */
const streamOptions: ZlibOptions = { ...options, flush: constants.Z_SYNC_FLUSH };

/** Not HTML: some pages contain the token of a link. */
const types = /^(application\/(json|x-ndjson)|text\/(csv|css|javascript))\b/;

/**
 * Compresses answers with gzip for clients that accept it (RFC 9110 section 12.5.3), in Node's thread pool.
 * `allowCompression` decides which answers.
 */
export function compress({ maxAtOnce = 32 }: CompressOptions = {}): Middleware {
  let running = 0;

  async function compressText(ctx: Context, text: string): Promise<void> {
    if (Buffer.byteLength(text) < leastBytes) return;
    running += 1;
    try {
      const bytes = await gzipped(text, options);
      ctx.set('Content-Encoding', 'gzip');
      ctx.body = bytes;
    } finally {
      running -= 1;
    }
  }

  function compressStream(ctx: Context, source: Readable): void {
    running += 1;
    // An error in either stream ends both. Koa learns of it from the stream that it sends.
    const compressed = pipeline(source, createGzip(streamOptions), () => {
      running -= 1;
    });
    ctx.set('Content-Encoding', 'gzip');
    ctx.body = compressed;
  }

  return async (ctx, next) => {
    await next();
    if (ctx['mayCompress'] !== true || !types.test(ctx.type)) return;
    // It is stored compressed.
    if (ctx.res.hasHeader('Content-Encoding')) return;
    ctx.vary('Accept-Encoding');
    if (running >= maxAtOnce || ctx.acceptsEncodings('gzip', 'identity') !== 'gzip') return;
    if (typeof ctx.body === 'string') await compressText(ctx, ctx.body);
    else compressStream(ctx, ctx.body as Readable);
  };
}

/**
 * Marks an answer that may be compressed. Answers with a secret may not: if others can add text to an answer, its
 * length reveals what else is in it (BREACH). So only answers to GET are compressed.
 */
function allowCompression(ctx: Context, route: Route, account: Account | null): void {
  const { method, isEndless, secrets } = route;
  const hasSecrets = secrets === 'always' || (secrets === 'sessions' && !account?.key);
  ctx['mayCompress'] = method === 'get' && !isEndless && !hasSecrets;
}

/** Throws `forbidden` if the API key may not use the route. A session may use every route. */
function checkRights(account: Account, { scope, isOfWholeAccount }: Route): void {
  const { key } = account;
  if (!key) return;
  if (scope === undefined)
    throw new DomainError(
      'forbidden',
      'An API key does not open this route: log in with the password.',
    );
  checkScope(account, scope);
  if (isOfWholeAccount && key.labels.length > 0)
    throw new DomainError(
      'forbidden',
      'The API key is restricted to devices with certain labels, but this route concerns the ' +
        'whole account.',
    );
}

/** Throws `forbidden` if the API key lacks the scope. */
export function checkScope({ key }: Account, scope: NonNullable<Route['scope']>): void {
  if (key && !key.scopes.includes(scope))
    throw new DomainError('forbidden', `The API key lacks the scope ${scope}.`);
}

/** The labels to which the caller's API key is restricted; null: no restriction. */
export function labelsOf({ key }: Account): readonly string[] | null {
  return key && key.labels.length > 0 ? key.labels : null;
}
