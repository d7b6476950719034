import type { Context } from 'koa';
import type { Clock } from '../lib/clock.ts';
import { openBody } from './body-chunks.ts';
import type { Body, RequestInfo } from './request.ts';

/** What the outer middleware finds out about a request before any route does. */
export type RequestState = Pick<
  RequestInfo,
  'requestId' | 'receivedTs' | 'now' | 'address' | 'isHttps'
> & {
  /** Of a body that was read as a whole, before it was decoded. */
  bodyBytes?: Buffer;
};

/**
 * A request as handlers see it; nothing of Koa. A class, because for a getter in an object literal V8
 * makes a hidden class each time, which is never young and keeps the request until the next full
 * collection.
 */
export class KoaRequestInfo implements RequestInfo {
  readonly requestId: string;
  readonly receivedTs: number;
  readonly now: Clock;
  readonly address: string;
  readonly isHttps: boolean;
  readonly credential: string;
  readonly url: string;
  readonly #ctx: Context;
  readonly #stopping: AbortSignal;
  readonly #bodyStallMs: number | undefined;
  #signal: AbortSignal | undefined;

  constructor(ctx: Context, stopping: AbortSignal, credential: string, bodyStallMs?: number) {
    const { requestId, receivedTs, now, address, isHttps } = ctx.state as RequestState;
    this.requestId = requestId;
    this.receivedTs = receivedTs;
    this.now = now;
    this.address = address;
    this.isHttps = isHttps;
    this.credential = credential;
    this.url = ctx.originalUrl;
    this.#ctx = ctx;
    this.#stopping = stopping;
    this.#bodyStallMs = bodyStallMs;
  }

  header(name: string): string {
    return this.#ctx.get(name);
  }

  accepts(...types: string[]): string | false {
    const best = this.#ctx.accepts(...types);
    return typeof best === 'string' ? best : false;
  }

  setHeader(name: string, value: string | string[]): void {
    this.#ctx.set(name, value);
  }

  openBody(): Body {
    return openBody(this.#ctx, this.signal, this.#bodyStallMs);
  }

  /** Made for the few who ask: most requests are over before anybody could leave. */
  get signal(): AbortSignal {
    this.#signal ??= AbortSignal.any([clientGone(this.#ctx), this.#stopping]);
    return this.#signal;
  }
}

function clientGone(ctx: Context): AbortSignal {
  const controller = new AbortController();
  ctx.res.once('close', () => controller.abort());
  if (ctx.res.closed) controller.abort();
  return controller.signal;
}
