import { pipeline, type Readable } from 'node:stream';
import { promisify } from 'node:util';
import { constants, createGzip, gzip, type ZlibOptions } from 'node:zlib';
import type { Context, Middleware } from 'koa';
import type { Account } from './request.ts';
import type { Route } from './route.ts';

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
export function allowCompression(ctx: Context, route: Route, account: Account | null): void {
  const { method, isEndless, secrets } = route;
  const hasSecrets = secrets === 'always' || (secrets === 'sessions' && !account?.key);
  ctx['mayCompress'] = method === 'get' && !isEndless && !hasSecrets;
}
