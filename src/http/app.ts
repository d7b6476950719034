import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import cors from '@koa/cors';
import Koa, { type Context, type Middleware } from 'koa';
import helmet from 'koa-helmet';
import { MemoryBudget } from '../lib/fair-budget.ts';
import type { Clock } from '../lib/clock-readings.ts';
import { UnreadBodies } from '../lib/request-body.ts';
import type { Logger } from '../log/logger.ts';
import { type Allowance, type FindAddress, plain, trustProxies, trusts } from './answer.ts';
import { createBodyReader, type RequestState } from './body.ts';
import { toAnswer } from './errors.ts';
import { createReserveMemory } from './memory.ts';
import type { Account } from './request.ts';
import type { Route } from './route.ts';
import { compress, type CompressOptions, mountRoutes, type RouterDeps } from './router.ts';

export type AppOptions = {
  routes: Route[];
  /** The account of a bearer token. Throws `unauthenticated`, or `unavailable` if the token store is away. */
  authenticate: (token: string) => Promise<Account>;
  /** Absent: cookies do not authenticate. */
  readCookie?: RouterDeps['readCookie'];
  /** Counts a request of an account, and returns what is left of its allowance. */
  takeRequest?: (accountId: number) => Allowance;
  /** Runs what a request does for its account; absent: it runs directly. */
  beginWork?: RouterDeps['beginWork'];
  /** The account of a stream's ticket; absent: there are no tickets. */
  authenticateTicket?: RouterDeps['authenticateTicket'];
  places?: RouterDeps['places'];
  /** Absent: no API key is restricted to labels. */
  checkReach?: RouterDeps['checkReach'];
  confirmReads?: RouterDeps['confirmReads'];
  /** Absent: no route takes an Idempotency-Key. */
  runOnce?: RouterDeps['runOnce'];
  log: Logger;
  clock: Clock;
  observe?: Observe;
  /** Whether the service is about to stop: then each answer ends its connection. */
  isLeaving?: () => boolean;
  /** Memory for all requests together, from their bodies to their answers, in bytes; 128 MiB. */
  requestBytes?: number;
  /** Whether memory is short: then only probes and the status are answered. */
  isShort?: () => boolean;
  /** How long a streamed body may pause; 60 s. */
  bodyStallMs?: number;
  /** Largest request body, in bytes; 1 MiB. */
  bodyLimitBytes?: number;
  compress?: CompressOptions;
  /** The process's; its own if absent. */
  unreadBodies?: UnreadBodies;
  /** Origins from which browsers may call; none by default, `*` for any. */
  corsOrigins?: string[];
  /** Addresses and networks of proxies whose `X-Forwarded-For` counts; none by default. */
  trustedProxies?: string[];
};

/** One account or network may take a quarter. Few may wait, because each of them occupies a connection. */
const waiting = { share: 1 / 4, maxWaiting: 1_000, maxWaitingOfKey: 250 };

/**
 * All of HTTP as one Koa application that does not listen yet. It adds to `ownPace` the requests whose bodies may take
 * as long as they keep arriving.
 */
export function createApp(
  options: AppOptions,
  stopping: AbortSignal,
  ownPace: RouterDeps['ownPace'],
): Koa {
  const { routes, authenticate, log, clock, observe = () => {} } = options;
  const { isLeaving = () => false, unreadBodies = new UnreadBodies() } = options;
  const app = new Koa();
  const { trustedProxies = [] } = options;
  const findAddress = trustProxies(trustedProxies);
  const isTrusted = trusts(trustedProxies);
  // Errors after the answer began: a stream's source failed, or the client left.
  app.on('error', (err: unknown) =>
    log[hasLeft(err) ? 'debug' : 'error'](
      { event: 'request.broken-off', err },
      'An answer was interrupted.',
    ),
  );
  app.use(
    guard({ log, findAddress, isTrusted, clock, observe, stopping, isLeaving, unreadBodies }),
  );
  app.use(securityHeaders());
  app.use(crossOrigin(options.corsOrigins ?? []));
  app.use(compress(options.compress));
  const {
    authenticateTicket,
    takeRequest,
    beginWork,
    checkReach,
    confirmReads,
    runOnce,
    bodyLimitBytes = 1_048_576,
    isShort = () => false,
  } = options;
  const readBody = createBodyReader(bodyLimitBytes);
  const maxBytes = options.requestBytes ?? 134_217_728;
  const reserveMemory = createReserveMemory({
    budget: new MemoryBudget({ maxBytes, ...waiting }),
    largeBudget: new MemoryBudget({ maxBytes: maxBytes / 2, ...waiting }),
    isShort,
    bodyLimitBytes,
  });
  mountRoutes(app, {
    routes,
    authenticate,
    authenticateTicket,
    readCookie: options.readCookie,
    places: options.places,
    takeRequest,
    beginWork,
    checkReach,
    confirmReads,
    runOnce,
    readBody,
    reserveMemory,
    ownPace,
    bodyStallMs: options.bodyStallMs,
    stopping,
  });
  return app;
}

function hasLeft(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : '';
  return ['ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET', 'EPIPE', 'ABORT_ERR'].includes(String(code));
}

export type Observe = (request: {
  method: string;
  /** The documented path, with `{names}`; empty if no route answered. */
  route: string;
  status: number;
  seconds: number;
}) => void;

type GuardDeps = {
  log: Logger;
  findAddress: FindAddress;
  /** Whether the address is a trusted proxy's. */
  isTrusted: (address: string) => boolean;
  clock: Clock;
  observe: Observe;
  stopping: AbortSignal;
  /** Whether the service is about to stop but still serves. */
  isLeaving: () => boolean;
  unreadBodies: UnreadBodies;
};

/** Characters of a path that are logged: a path may be as long as a request's head. */
const loggedPath = 256;

/** The outermost middleware: it gives every request an id, and turns every error into an answer. */
function guard(deps: GuardDeps): Middleware {
  return async (ctx, next) => {
    // oxlint-disable-next-line no-restricted-globals -- names each request, and measures how long it took
    const startedMs = performance.now();
    const peer = ctx.req.socket.remoteAddress ?? '';
    const state: RequestState = {
      requestId: randomUUID(),
      receivedTs: deps.clock(),
      now: deps.clock,
      address: deps.findAddress(peer, ctx.get('x-forwarded-for')),
      isHttps: deps.isTrusted(plain(peer)) && /^https\b/i.test(ctx.get('x-forwarded-proto')),
    };
    ctx.state = state;
    ctx.set('X-Request-Id', state.requestId);
    ctx.set('Cache-Control', 'no-store');
    try {
      await next();
    } catch (error) {
      answerError(deps, ctx, state, error);
      await endConnection(ctx, deps.unreadBodies);
    }
    // The service is stopping: the client's next request belongs on another connection, to another process.
    if (deps.stopping.aborted || deps.isLeaving()) ctx.set('Connection', 'close');
    finish(deps, ctx, state, startedMs);
  };
}

/** The unread rest of a refused request is not the next request. */
async function endConnection(ctx: Context, unreadBodies: UnreadBodies): Promise<void> {
  if (ctx.req.complete) return;
  ctx.set('Connection', 'close');
  await unreadBodies.drop(ctx.req, (ctx.state as RequestState).address);
}

function answerError(deps: GuardDeps, ctx: Context, state: RequestState, error: unknown): void {
  const { status, headers, body } = toAnswer(error, state.requestId, state.now());
  ctx.status = status;
  ctx.set(headers);
  ctx.type = 'application/json';
  ctx.body = JSON.stringify(body);
  // Never the request's headers or body: they hold tokens and passwords.
  const where = {
    requestId: state.requestId,
    method: ctx.method,
    path: ctx.path.slice(0, loggedPath),
  };
  if (status === 500)
    deps.log.error({ event: 'request.failed', ...where, err: error }, 'A request failed.');
  else if (status === 503 && ctx['quiet'] !== true)
    deps.log.warn(
      { event: 'request.unavailable', ...where, err: error },
      'A request was answered as unavailable.',
    );
}

function finish(deps: GuardDeps, ctx: Context, state: RequestState, startedMs: number): void {
  const { method, status } = ctx;
  // oxlint-disable-next-line no-restricted-globals -- names each request, and measures how long it took
  const ms = performance.now() - startedMs;
  const route = typeof ctx['route'] === 'string' ? ctx['route'] : '';
  deps.observe({ method, route, status, seconds: ms / 1_000 });
  if (!deps.log.isLevelEnabled('debug')) return;
  const { requestId, address } = state;
  const asked = { requestId, method, path: ctx.path.slice(0, loggedPath), status, ms, address };
  deps.log.debug({ event: 'request.done', ...asked }, 'A request was answered.');
}

/**
 * Security headers for an API that also has a few pages. They never redirect a browser to HTTPS: on a LAN this service
 * speaks plain HTTP, and a proxy that speaks HTTPS adds that header itself.
 */
function securityHeaders(): Middleware {
  return helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"],
        frameAncestors: ["'none'"],
        baseUri: ["'none'"],
        formAction: ["'none'"],
      },
    },
    strictTransportSecurity: false,
    // Only outdated browsers or plug-ins ever read these.
    xDnsPrefetchControl: false,
    xDownloadOptions: false,
    xPermittedCrossDomainPolicies: false,
    xXssProtection: false,
    originAgentCluster: false,
    crossOriginResourcePolicy: { policy: 'same-origin' },
    referrerPolicy: { policy: 'no-referrer' },
    xFrameOptions: { action: 'deny' },
  });
}

/** Allows cross-origin calls from these origins only (`*` for any). The console's cookie does not authenticate them. */
function crossOrigin(origins: string[]): Middleware {
  return cors({
    // An empty origin makes the package leave all its headers out.
    origin: (ctx) => {
      const origin = ctx.get('origin');
      return origins.includes('*') ? '*' : origins.includes(origin) ? origin : '';
    },
    allowMethods: ['GET', 'POST', 'PUT', 'DELETE'],
    allowHeaders: [
      'Authorization',
      'Content-Type',
      'Idempotency-Key',
      'If-Match',
      'Last-Event-ID',
      'X-Reason',
    ],
    exposeHeaders: [
      'ETag',
      'Link',
      'RateLimit',
      'RateLimit-Policy',
      'Retry-After',
      'X-Request-Id',
      'X-Warnings',
    ],
    maxAge: 600,
  });
}

/**
 * The same for devices' paths, which bypass Koa. Returns true if the request was a preflight (Fetch section 4.8), which
 * carries no login, and was answered. A browser that acts as a device sends `POST` or `GET` with a login and a media
 * type of its own.
 */
export function crossOriginDevices(
  origins: string[],
): (request: IncomingMessage, response: ServerResponse) => boolean {
  const isAny = origins.includes('*');
  return (request, response) => {
    const { origin } = request.headers;
    const isAllowed = origin !== undefined && (isAny || origins.includes(origin));
    if (isAllowed) {
      response.setHeader('Access-Control-Allow-Origin', isAny ? '*' : origin);
      response.setHeader('Access-Control-Expose-Headers', 'Retry-After');
      if (!isAny) response.setHeader('Vary', 'Origin');
    }
    if (request.method !== 'OPTIONS') return false;
    if (isAllowed) {
      response.setHeader('Access-Control-Allow-Methods', 'GET,POST');
      response.setHeader('Access-Control-Allow-Headers', 'Authorization,Content-Type');
      response.setHeader('Access-Control-Max-Age', '600');
    }
    response.writeHead(204, { Allow: 'GET, POST, OPTIONS' }).end();
    return true;
  };
}
