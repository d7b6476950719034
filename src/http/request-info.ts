import type { Context } from 'koa';
import type { RequestInfo } from './route.ts';

/** What the outer middleware finds out about a request before any route does. */
export type RequestState = { requestId: string; address: string };

/** A request as handlers see it; nothing of Koa. */
export function requestInfo(ctx: Context, stopping: AbortSignal): RequestInfo {
  const { requestId, address } = ctx.state as RequestState;
  let signal: AbortSignal | undefined;
  return {
    requestId,
    address,
    url: ctx.originalUrl,
    header: (name) => ctx.get(name),
    accepts: (...types) => {
      const best = ctx.accepts(...types);
      return typeof best === 'string' ? best : false;
    },
    setHeader: (name, value) => ctx.set(name, value),
    // Made for the few who ask: most requests are over before anybody could leave.
    get signal() {
      signal ??= AbortSignal.any([clientGone(ctx), stopping]);
      return signal;
    },
  };
}

function clientGone(ctx: Context): AbortSignal {
  const controller = new AbortController();
  ctx.res.once('close', () => controller.abort());
  if (ctx.res.closed) controller.abort();
  return controller.signal;
}
