import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Context } from 'koa';
import { DomainError } from '../errors.ts';
import { codeOf } from '../lib/thrown.ts';
import type { Body } from './request.ts';

/** Without a byte for so long a body has ended. Time in which nobody reads it does not count. */
const stalledMs = 60_000;
const chunkBytes = 65_536;
/**
 * How many bytes gzip may make of one, beyond the first `freeBytes`: the work is bounded by what was sent. A table of
 * measurements shrinks to a fortieth at best; gzip can do a thousandth.
 */
const maxExpansion = 100;
const freeBytes = 1_048_576;

/**
 * Takes a body that is to be read as it comes, whatever its size. Throws `unsupported-type` unless it is of one
 * of these media types, in UTF-8, and as it is or gzip.
 */
export function acceptBody(ctx: Context, types: string[], ownPace: WeakSet<IncomingMessage>): void {
  const { type, charset } = ctx.request;
  if (!types.includes(type)) throw unsupported(`The body must be ${types.join(' or ')}.`);
  if (!['', 'utf-8', 'utf8'].includes(charset.toLowerCase()))
    throw unsupported('The body must be written in UTF-8.');
  if (!['', 'identity', 'gzip'].includes(encodingOf(ctx)))
    throw unsupported('The body may be compressed with gzip, and with nothing else.');
  ownPace.add(ctx.req);
}

/** What was accepted. `signal`: nobody waits for more of it. */
export function openBody(ctx: Context, signal: AbortSignal, longestMs = stalledMs): Body {
  return { type: ctx.request.type, chunks: readChunks(ctx, signal, longestMs) };
}

async function* readChunks(
  ctx: Context,
  signal: AbortSignal,
  longestMs: number,
): AsyncGenerator<Buffer> {
  const { req } = ctx;
  const isCompressed = encodingOf(ctx) === 'gzip';
  const gunzip = isCompressed ? req.pipe(createGunzip({ chunkSize: chunkBytes })) : null;
  const source: Readable = gunzip ?? req;
  let readBytes = 0;
  // Decompressed, a body is read from another stream, which does not hear that the client has gone.
  const end = new EarlyEnd();
  const onClose = () => {
    if (!req.complete) end.reached(brokeOff());
  };
  const onAbort = () => end.reached(req.destroyed ? brokeOff() : stops());
  req.once('close', onClose);
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  // The answer is still to be written: the connection stays, whatever becomes of the body.
  const iterator = source.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>;
  try {
    for (;;) {
      const next = await end.orSooner(iterator.next(), longestMs);
      if (next.done === true) return;
      readBytes += next.value.length;
      if (gunzip && readBytes > freeBytes + gunzip.bytesWritten * maxExpansion) throw tooDense();
      yield next.value;
    }
  } catch (error) {
    throw describe(error, req, isCompressed);
  } finally {
    req.off('close', onClose);
    signal.removeEventListener('abort', onAbort);
    if (isCompressed) source.destroy();
  }
}

/**
 * What ends a body before its end. No `Promise.race` with one promise for all of the body: that one would keep
 * something of each chunk.
 */
class EarlyEnd {
  #error: Error | undefined;
  #reject: ((error: Error) => void) | undefined;

  reached(error: Error): void {
    this.#error ??= error;
    this.#reject?.(this.#error);
  }

  /** Waits for `work`, for `longestMs` at most, and not beyond the end. */
  async orSooner<T>(work: Promise<T>, longestMs: number): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const seconds = longestMs / 1_000;
    const timer = setTimeout(
      () => reject(new DomainError('too-slow', `Nothing of the body came for ${seconds} s.`)),
      longestMs,
    );
    this.#reject = reject;
    work.then(resolve, reject);
    if (this.#error) reject(this.#error);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      this.#reject = undefined;
    }
  }
}

function describe(error: unknown, req: IncomingMessage, isCompressed: boolean): unknown {
  if (error instanceof DomainError) return error;
  const code = codeOf(error);
  if (isCompressed && code.startsWith('Z_'))
    return new DomainError('invalid-input', 'The body is not gzip, or not all of it.', {
      cause: error,
    });
  return req.complete ? error : brokeOff(error);
}

const tooDense = () =>
  new DomainError(
    'invalid-input',
    `The gzip of the body expands more than ${maxExpansion}-fold. Send it as it is, or in smaller parts.`,
  );
const encodingOf = (ctx: Context) => ctx.get('content-encoding').trim().toLowerCase();
const unsupported = (message: string) => new DomainError('unsupported-type', message);
const stops = () => new DomainError('unavailable', 'The service stops.');
const brokeOff = (cause?: unknown) =>
  new DomainError('invalid-input', 'The body broke off.', { cause });
