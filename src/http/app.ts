import Koa from 'koa';
import type { Logger } from 'pino';
import { trustProxies } from './address.ts';
import { createBodyReader } from './body.ts';
import { guard, type Observe } from './guard.ts';
import { crossOrigin, securityHeaders } from './headers.ts';
import type { Account, Route } from './route.ts';
import type { Allowance } from './rate-limit.ts';
import { mountRoutes } from './router.ts';

export type AppOptions = {
  routes: Route[];
  /** Whom a bearer token speaks for; throws `unauthenticated`, or `unavailable` with its store away. */
  authenticate: (token: string) => Promise<Account>;
  /** Counts a request of an account, and says what is left of what it may ask. */
  takeRequest?: (accountId: number) => Allowance;
  log: Logger;
  clock?: () => number;
  observe?: Observe;
  /** Whether the service is about to stop: each answer then ends its connection. */
  isLeaving?: () => boolean;
  /** Largest request body; 1 MiB. */
  bodyLimitBytes?: number;
  /** Origins that browsers may call from; none by default, `*` for any. */
  corsOrigins?: string[];
  /** Addresses and networks of proxies whose `X-Forwarded-For` counts; none by default. */
  trustedProxies?: string[];
};

/** The whole of HTTP as one Koa application; it listens nowhere yet. */
export function createApp(options: AppOptions, stopping: AbortSignal): Koa {
  const { routes, authenticate, log, clock = Date.now, observe = () => {} } = options;
  const { isLeaving = () => false } = options;
  const app = new Koa();
  const findAddress = trustProxies(options.trustedProxies ?? []);
  // What goes wrong after the answer began: a stream's source, or a client that left.
  app.on('error', (err: unknown) => log[hasLeft(err) ? 'debug' : 'error']({ err }, 'broken off'));
  app.use(guard({ log, findAddress, clock, observe, stopping, isLeaving }));
  app.use(securityHeaders());
  app.use(crossOrigin(options.corsOrigins ?? []));
  const readBody = createBodyReader(options.bodyLimitBytes ?? 1_048_576);
  const { takeRequest } = options;
  mountRoutes(app, { routes, authenticate, takeRequest, readBody, stopping });
  return app;
}

function hasLeft(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : '';
  return ['ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET', 'EPIPE', 'ABORT_ERR'].includes(String(code));
}
