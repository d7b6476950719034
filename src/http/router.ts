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
import type { Account, Token } from './request.ts';
import type { Route } from './route.ts';

export type RouterDeps = {
  routes: Route[];
  /** Throws `unauthenticated` for a token that opens nothing. */
  authenticate: (token: string) => Promise<Account>;
  /** The same of a ticket, which stands in the query; absent: no route takes one. */
  authenticateTicket?: ((ticket: string) => Promise<Account>) | undefined;
  /** Told of each request whose account is known. */
  onLogin?: ((request: IncomingMessage) => void) | undefined;
  /** The token in the request's cookie; null where none came. Throws `forbidden` where it must not count. */
  readCookie?:
    ((request: { method: string; header(name: string): string }) => string | null) | undefined;
  /** Throws `not-found` unless the device has one of the labels to which the account's key is confined. */
  checkReach?:
    | ((accountId: number, deviceUuid: string, labels: readonly string[]) => Promise<void>)
    | undefined;
  /** Counts a request of an account; nothing is counted without it. */
  takeRequest?: ((accountId: number) => Allowance) | undefined;
  /** Begins what a request of an account does; absent: nobody has to know whose it is. */
  beginWork?: ((accountId: number) => Work) | undefined;
  /** Resolves when what was read is as safe as a commit (`Database.confirmReads`); absent: it always is. */
  confirmReads?: (() => Promise<void>) | undefined;
  /** Answers requests with an Idempotency-Key; without it they are answered as those without. */
  runOnce?: RunOnce | undefined;
  readBody: BodyReader;
  reserveMemory: ReserveMemory;
  /** Requests whose bodies may take as long as they keep coming. */
  ownPace: WeakSet<IncomingMessage>;
  /** How long these may wait for their next piece; 60 s. */
  bodyStallMs?: number | undefined;
  /** Aborts when the service stops. */
  stopping: AbortSignal;
};

/** What a request does for an account: all that `run` began, until `end`. */
type Work = { run<T>(work: () => Promise<T>): Promise<T>; end(): void };

/** An answer as text, and as the bytes that are sent. */
const sentFactor = 3;

/** Answers the routes; what none of them answers is 404, or 405 with `Allow`. */
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

/** The first route that fits is taken: `/devices/profile` goes before `/devices/{deviceAuthUuid}`. */
function writtenOutFirst(a: Route, b: Route): number {
  // In ASCII, `{` comes after every letter and digit.
  return a.path < b.path ? -1 : 1;
}

function refuse(router: Router, ctx: Context): void {
  const allowed = isWellFormed(ctx.path) ? methodsOf(router, ctx) : [];
  if (allowed.length === 0) ctx.throw(404, 'There is no such resource');
  ctx.set('Allow', allowed.join(', '));
  if (ctx.method !== 'OPTIONS') ctx.throw(405, 'This resource does not support this method');
  ctx.status = 204;
}

/** With HEAD where there is GET (RFC 9110 section 9.3.2). */
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
  // Also where the client left long before: what it asked for is still its account's work.
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
  if (route.method !== 'get') checkCondition(ctx);
  const request = new KoaRequestInfo(ctx, deps.stopping, credential, deps.bodyStallMs);
  await route.admit?.(request);
  const place = await deps.reserveMemory(ctx, route, account);
  if (route.takes) acceptBody(ctx, Object.keys(route.takes), deps.ownPace);
  const body = route.body ? await deps.readBody(ctx, route) : undefined;
  const query = readQuery(ctx, route);
  const call = (once?: Once) => route.call({ params, query, body, account, request, once });
  const key = route.takesKey && deps.runOnce ? readKey(ctx) : null;
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
 * RFC 9110 section 13.1.1: nothing here has an entity tag, so none matches, and what was to be changed only if it is as
 * it was read must stay. Throws 412; `*` holds for whatever is there.
 */
function checkCondition(ctx: Context): void {
  const tags = ctx.get('if-match').trim();
  if (tags === '' || tags === '*') return;
  ctx.throw(412, 'Resources here have no entity tags, so only If-Match: * can hold');
}

/** Whoever reads it, each piece is made as a part of the request. */
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
 * Answers a request that was to change something. Where the answer says that there was nothing to change ("there is no
 * such device", "there is an account with this address", a second DELETE), it goes by what was read, and its sender takes
 * it for the outcome of an earlier attempt: it waits until a failover cannot undo that. So does a 401 of a DELETE, which
 * may have ended what let its sender in.
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

/** Nothing tells a client that has ended its side from one that has gone, and an endless answer waits for neither. */
function endWithClient(socket: Socket): void {
  const end = () => socket.destroy();
  if (socket.readableEnded) end();
  else socket.once('end', end);
}

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
  deps.onLogin?.(ctx.req);
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

/** Who sends a bearer token means that one, whatever cookies a browser adds. */
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
  /** Answers that are compressed at once; 32. Each takes 256 KiB, and what comes beside them is sent as it is. */
  maxAtOnce?: number;
};

const gzipped = promisify<string, ZlibOptions, Buffer>(gzip);

/** What fits into one packet arrives no sooner when it is smaller. */
const leastBytes = 1_400;
/** The fastest: rows repeat themselves so much that more effort saves little. */
const options: ZlibOptions = { level: 1 };
/** What is sent as it is read arrives as it is read: gzip would hold back megabytes of rows that repeat themselves. */
const streamOptions: ZlibOptions = { ...options, flush: constants.Z_SYNC_FLUSH };

/** Pages are left out: some have the token of a link in them. */
const types = /^(application\/(json|x-ndjson)|text\/(csv|css|javascript))\b/;

/**
 * Compresses answers with gzip for whoever takes it (RFC 9110 section 12.5.3), in Node's thread pool. Which answers,
 * says `allowCompression`.
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
    // What goes wrong with one of them ends both; Koa hears of it from the one that it sends.
    const compressed = pipeline(source, createGzip(streamOptions), () => {
      running -= 1;
    });
    ctx.set('Content-Encoding', 'gzip');
    ctx.body = compressed;
  }

  return async (ctx, next) => {
    await next();
    if (ctx['mayCompress'] !== true || !types.test(ctx.type)) return;
    // Compressed already, as it was stored.
    if (ctx.res.hasHeader('Content-Encoding')) return;
    ctx.vary('Accept-Encoding');
    if (running >= maxAtOnce || ctx.acceptsEncodings('gzip', 'identity') !== 'gzip') return;
    if (typeof ctx.body === 'string') await compressText(ctx, ctx.body);
    else compressStream(ctx, ctx.body as Readable);
  };
}

/**
 * Says that an answer may be compressed. Those with a secret may not: where others can add to an answer, its
 * length would tell them what else is in it (BREACH). So nothing is that was made just now, by a POST.
 */
function allowCompression(ctx: Context, route: Route, account: Account | null): void {
  const { method, isEndless, secrets } = route;
  const hasSecrets = secrets === 'always' || (secrets === 'sessions' && !account?.key);
  ctx['mayCompress'] = method === 'get' && !isEndless && !hasSecrets;
}

/** Throws `forbidden` where a route is closed to the key with which it is called; a session opens all. */
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

/** Throws `forbidden` where a key lacks the scope. */
export function checkScope({ key }: Account, scope: NonNullable<Route['scope']>): void {
  if (key && !key.scopes.includes(scope))
    throw new DomainError('forbidden', `The API key lacks the scope ${scope}.`);
}

/** The labels to which whoever calls is confined; null: to none. */
export function labelsOf({ key }: Account): readonly string[] | null {
  return key && key.labels.length > 0 ? key.labels : null;
}
