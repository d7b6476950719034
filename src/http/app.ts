import Koa from 'koa';
import { trustProxies, trusts } from './address.ts';
import { createBodyReader } from './body.ts';
import { ByteRoom } from '../lib/byte-room.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../log/logger.ts';
import { compress, type CompressOptions } from './compress.ts';
import { guard, type Observe } from './guard.ts';
import { crossOrigin, securityHeaders } from './headers.ts';
import type { Account } from './request.ts';
import type { Route } from './route.ts';
import type { Allowance } from './rate-limit.ts';
import { createTakeRoom } from './memory.ts';
import { mountRoutes, type RouterDeps } from './router.ts';

export type AppOptions = {
  routes: Route[];
  /** Whom a bearer token speaks for; throws `unauthenticated`, or `unavailable` with its store away. */
  authenticate: (token: string) => Promise<Account>;
  /** Absent: no cookie opens anything. */
  readCookie?: RouterDeps['readCookie'];
  /** Counts a request of an account, and says what is left of what it may ask. */
  takeRequest?: (accountId: number) => Allowance;
  /** What a request of an account does is done through this; absent: just so. */
  beginWork?: RouterDeps['beginWork'];
  /** Whom a ticket of a stream speaks for; absent: there are none. */
  authenticateTicket?: RouterDeps['authenticateTicket'];
  onLogin?: RouterDeps['onLogin'];
  /** Absent: no key is confined to labels. */
  checkReach?: RouterDeps['checkReach'];
  confirmReads?: RouterDeps['confirmReads'];
  /** Absent: no route takes an Idempotency-Key. */
  runOnce?: RouterDeps['runOnce'];
  log: Logger;
  clock: Clock;
  observe?: Observe;
  /** Whether the service is about to stop: each answer then ends its connection. */
  isLeaving?: () => boolean;
  /** What requests may take together, in bytes, from their bodies to their answers; 128 MiB. */
  roomBytes?: number;
  /** Whether memory is short: only probes and the status are answered then. */
  isShort?: () => boolean;
  /** How long a body that is read as it comes may wait for its next piece; 60 s. */
  bodyStallMs?: number;
  /** Largest request body; 1 MiB. */
  bodyLimitBytes?: number;
  compress?: CompressOptions;
  /** Origins that browsers may call from; none by default, `*` for any. */
  corsOrigins?: string[];
  /** Addresses and networks of proxies whose `X-Forwarded-For` counts; none by default. */
  trustedProxies?: string[];
};

/** One account or network may take a quarter; few wait, for each that waits holds a connection. */
const waiting = { share: 1 / 4, maxWaiting: 1_000, maxWaitingOfKey: 250 };

/**
 * The whole of HTTP as one Koa application; it listens nowhere yet. `ownPace`: requests are added to it
 * whose bodies may take as long as they keep coming.
 */
export function createApp(
  options: AppOptions,
  stopping: AbortSignal,
  ownPace: RouterDeps['ownPace'],
): Koa {
  const { routes, authenticate, log, clock, observe = () => {} } = options;
  const { isLeaving = () => false } = options;
  const app = new Koa();
  const { trustedProxies = [] } = options;
  const findAddress = trustProxies(trustedProxies);
  const isTrusted = trusts(trustedProxies);
  // What goes wrong after the answer began: a stream's source, or a client that left.
  app.on('error', (err: unknown) =>
    log[hasLeft(err) ? 'debug' : 'error'](
      { event: 'request.broken-off', err },
      'An answer was broken off.',
    ),
  );
  app.use(guard({ log, findAddress, isTrusted, clock, observe, stopping, isLeaving }));
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
  const maxBytes = options.roomBytes ?? 134_217_728;
  const takeRoom = createTakeRoom({
    room: new ByteRoom({ maxBytes, ...waiting }),
    largeRoom: new ByteRoom({ maxBytes: maxBytes / 2, ...waiting }),
    isShort,
    bodyLimitBytes,
  });
  mountRoutes(app, {
    routes,
    authenticate,
    authenticateTicket,
    readCookie: options.readCookie,
    onLogin: options.onLogin,
    takeRequest,
    beginWork,
    checkReach,
    confirmReads,
    runOnce,
    readBody,
    takeRoom,
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
