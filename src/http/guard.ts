import { randomUUID } from 'node:crypto';
import type { Context, Middleware } from 'koa';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../log/logger.ts';
import { plain, type FindAddress } from './address.ts';
import { toAnswer } from './errors.ts';
import type { RequestState } from './request-info.ts';
import { dropUnreadBody } from '../lib/request-body.ts';

export type Observe = (request: {
  method: string;
  /** As documented, with `{names}`; empty for what no route answers. */
  route: string;
  status: number;
  seconds: number;
}) => void;

export type GuardDeps = {
  log: Logger;
  findAddress: FindAddress;
  /** Whether an address is a trusted proxy's. */
  isTrusted: (address: string) => boolean;
  clock: Clock;
  observe: Observe;
  stopping: AbortSignal;
  /** Whether the service is about to stop, and still serves. */
  isLeaving: () => boolean;
};

/** So much of a path is written into the log: it may be as long as a request's head. */
const loggedPath = 256;

/** The outermost step: every request gets an id, and every error becomes an answer here. */
export function guard(deps: GuardDeps): Middleware {
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
      await endConnection(ctx);
    }
    // Asked to stop: what the client sends next is for another process, on another connection.
    if (deps.stopping.aborted || deps.isLeaving()) ctx.set('Connection', 'close');
    finish(deps, ctx, state, startedMs);
  };
}

/** What is refused before all of it was read leaves a rest that is no next request. */
async function endConnection(ctx: Context): Promise<void> {
  if (ctx.req.complete) return;
  ctx.set('Connection', 'close');
  await dropUnreadBody(ctx.req, (ctx.state as RequestState).address);
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
