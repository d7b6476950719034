import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createUnzip } from 'node:zlib';
import type { Context } from 'koa';
import { DomainError, type Problem } from '../errors.ts';
import type { Clock, WallMs } from '../lib/clock-readings.ts';
import { yieldToEventLoop } from '../lib/event-loop.ts';
import {
  endOfString,
  findJsonError,
  jsonPointer,
  maxJsonParts,
  measureJson,
  tellJsonError,
} from '../lib/json.ts';
import { decodeUtf8 } from '../lib/utf8.ts';
import { JoinedChunks } from '../lib/request-body.ts';
import { codeOf } from '../lib/thrown.ts';
import type { Auth, Body, RequestInfo } from './request.ts';

const formType = 'application/x-www-form-urlencoded';

/** The parts of a route that say how its body is read. */
type BodyOf = { auth: Auth; admit?: unknown; isForm?: boolean; listBody?: ListBody };

/** Reads a JSON body, or a form if the route has `isForm`. Without a route: as for a route that requires a login. */
export type BodyReader = (ctx: Context, of?: BodyOf) => Promise<unknown>;

/** The limit for callers who have not logged in: they send credentials, a link's token, a form. */
const anonymousLimitBytes = 65_536;

/** The largest body that a route takes, in bytes. `limitBytes` is the configured limit. */
function bodyLimit({ auth, admit, listBody }: BodyOf, limitBytes: number): number {
  if (listBody) return listBody.limitBytes;
  return isAnonymous({ auth, admit }) ? Math.min(limitBytes, anonymousLimitBytes) : limitBytes;
}

/** Whether a route reads bodies from unauthenticated callers. With `token`, only the handler checks the token. */
export const isAnonymous = ({ auth, admit }: Pick<BodyOf, 'auth' | 'admit'>) =>
  !admit && (auth === 'none' || auth === 'token');

/**
 * The most bytes the body can have: the announced length, or the route's limit if the length is unknown. Throws an
 * error with status 413 if the announced length exceeds the limit.
 */
export function expectBody(ctx: Context, of: BodyOf, limitBytes: number): number {
  const most = bodyLimit(of, limitBytes);
  if (ctx.get('content-encoding') !== '' || ctx.get('transfer-encoding') !== '') return most;
  const announced = Number(ctx.get('content-length')) || 0;
  if (announced > most) throw tooLarge(of, most);
  return announced;
}

/**
 * Reads a JSON body of at most `limitBytes`, or 64 KiB on a route without login. The limit applies to the decompressed
 * body, before it is parsed. Without a body the result is `undefined`. Rejects with an error of status 413 or 415, or
 * `invalid-input`. If the body could not be read to its end, the answer closes the connection, because what follows on
 * it may be the rest of the body.
 */
export function createBodyReader(limitBytes: number): BodyReader {
  return async (ctx, of = { auth: 'account' }) => {
    const { isForm = false, listBody } = of;
    const types = isForm ? [formType] : ['application/json', 'application/*+json'];
    const isOfType = ctx.request.is(types);
    if (isOfType === null || ctx.get('content-length') === '0') return isForm ? {} : undefined;
    if (isOfType === false) ctx.throw(415, `The body must be ${types[0]}`);
    if (!['', 'utf-8', 'utf8'].includes(ctx.request.charset.toLowerCase())) {
      ctx.throw(415, 'JSON must be encoded in UTF-8');
    }
    const bytes = await readAll(ctx, of, limitBytes);
    (ctx.state as RequestState).bodyBytes = bytes;
    const text = decodeUtf8(bytes);
    if (text === null) throw new DomainError('invalid-input', 'The body is not UTF-8.');
    if (listBody) return parseListBody(text, listBody);
    if (isForm) return readForm(text);
    return text === '' ? undefined : parseJsonBody(text);
  };
}

/** The fields of a form; the last one wins if a name is repeated. Throws `invalid-input`. */
function readForm(text: string): Record<string, string> {
  if (!isPercentEncodedUtf8(text))
    throw new DomainError('invalid-input', 'The form is not percent-encoded UTF-8.');
  const fields = Object.fromEntries(new URLSearchParams(text));
  const problems = Object.entries(fields)
    .filter(([name, value]) => !isStorable(name) || !isStorable(value))
    .map(([name]) => ({ path: name, message: 'is not valid text' }));
  if (problems.length === 0) return fields;
  throw new DomainError('invalid-input', 'The request is not valid.', { problems });
}

/** All bytes of the body, decompressed. If it rejects, the answer closes the connection. */
async function readAll(ctx: Context, of: BodyOf, limitBytes: number): Promise<Buffer> {
  try {
    expectBody(ctx, of, limitBytes);
    return await join(ctx, decompressed(ctx), of, bodyLimit(of, limitBytes));
  } catch (error) {
    ctx.set('Connection', 'close');
    throw isOfZlib(error) ? malformed(ctx, error) : error;
  }
}

/** RFC 9110 section 8.4.1. `createUnzip` tells gzip and `deflate` (with zlib's header) apart by their first bytes. */
function decompressed(ctx: Context): Readable {
  const encoding = ctx.get('content-encoding') || 'identity';
  if (encoding === 'identity') return ctx.req;
  if (encoding === 'gzip' || encoding === 'deflate') return ctx.req.pipe(createUnzip());
  if (encoding === 'br') return ctx.req.pipe(createBrotliDecompress());
  return ctx.throw(415, `Unsupported Content-Encoding: ${encoding}`);
}

function join(ctx: Context, source: Readable, of: BodyOf, most: number): Promise<Buffer> {
  const { req } = ctx;
  return new Promise((resolve, reject) => {
    const joined = new JoinedChunks(most);
    const end = (): void => {
      source.off('data', onData).off('end', onEnd).off('error', onError);
      req.off('close', onClose);
      if (source === req) return;
      req.unpipe();
      // It may still fail on input that it received before.
      source.on('error', () => {}).destroy();
    };
    const fail = (error: Error): void => {
      end();
      req.pause();
      joined.clear();
      reject(error);
    };
    const onData = (chunk: Buffer): void => {
      if (joined.fits(chunk)) joined.add(chunk);
      else fail(tooLarge(of, most));
    };
    const onEnd = (): void => {
      end();
      resolve(joined.bytes);
    };
    const onError = (error: Error): void => fail(source === req ? bodyBrokeOff() : error);
    // A decompressed body is read from another stream, which does not notice that the client has gone.
    const onClose = (): void => {
      if (!req.complete) fail(bodyBrokeOff());
    };
    source.on('data', onData).on('end', onEnd).on('error', onError);
    req.on('close', onClose);
  });
}

function tooLarge(of: BodyOf, most: number): Error {
  const why = isAnonymous(of) ? ', the maximum without a login' : '';
  const message = `The body has more than ${most} bytes${why}`;
  return Object.assign(new Error(message), { status: 413 });
}

const bodyBrokeOff = () => new DomainError('invalid-input', 'The request body ended early.');

/** zlib's own codes (`Z_DATA_ERROR`), and those that Node gives brotli's errors. */
function isOfZlib(error: unknown): error is Error {
  if (!(error instanceof Error) || !('code' in error)) return false;
  return /^(Z_|ERR__ERROR_|ERR_BROTLI_|BROTLI_)/.test(String(error.code));
}

function malformed(ctx: Context, cause: Error): DomainError {
  const encoding = ctx.get('content-encoding');
  return new DomainError('invalid-input', `The body is not ${encoding}.`, { cause });
}

/** A body that is an object with one list, whose elements are read one by one. */
export type ListBody = {
  /** The name of the list. */
  member: string;
  /** The most elements. */
  most: number;
  /** The largest body, in bytes. */
  limitBytes: number;
};

const space = /[\t\n\r ]*/y;
/** Characters read before the loop yields to other requests. */
const lengthAtOnce = 65_536;

/**
 * Reads `{ "member": [ … ] }` element by element, yielding to other requests. The limits of a JSON body apply to each
 * element. Rejects with `invalid-input`; a problem's path names the element.
 */
async function parseListBody(
  text: string,
  { member, most }: ListBody,
): Promise<Record<string, unknown[]>> {
  const elements: unknown[] = [];
  const opening = new RegExp(
    `[\\t\\n\\r ]*\\{[\\t\\n\\r ]*"${member}"[\\t\\n\\r ]*:[\\t\\n\\r ]*\\[`,
    'y',
  );
  if (!opening.test(text)) throw notAList(member);
  let at = skipSpace(text, opening.lastIndex);
  let yieldedAt = at;
  let isOver = text[at] === ']';
  while (!isOver) {
    const path = `/${member}/${elements.length}`;
    if (elements.length === most)
      throw refuse({ path: `/${member}`, message: `expected at most ${most}` });
    const end = endOfElement(text, at, path);
    elements.push(await parseElement(text.slice(at, end), path));
    at = skipSpace(text, end);
    isOver = text[at] === ']';
    if (!isOver && text[at] !== ',') throw notAList(member);
    if (!isOver) at = skipSpace(text, at + 1);
    if (at - yieldedAt < lengthAtOnce) continue;
    yieldedAt = at;
    await yieldToEventLoop();
  }
  if (!/^[\t\n\r ]*\}[\t\n\r ]*$/.test(text.slice(at + 1, at + 1_000))) throw notAList(member);
  return { [member]: elements };
}

function skipSpace(text: string, at: number): number {
  space.lastIndex = at;
  space.test(text);
  return space.lastIndex;
}

async function parseElement(text: string, path: string): Promise<unknown> {
  try {
    return await parseJsonBody(text);
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    const { problems, message } = error;
    if (problems.length > 0)
      throw refuse(...problems.map((one) => ({ ...one, path: path + one.path })));
    throw refuse({ path, message: message.replace(/^The body /, '').replace(/\.$/, '') });
  }
}

/** The end of the element that begins at `start`. Stops reading once the element has too many parts. */
function endOfElement(text: string, start: number, path: string): number {
  let depth = 0;
  let parts = 0;
  for (let at = start; at < text.length; at += 1) {
    const char = text[at];
    if (char === '"') at = endOfString(text, at);
    else if (char === '{' || char === '[') depth += 1;
    else if (depth === 0 && (char === ',' || char === ']')) return at;
    else if (char === '}' || char === ']') depth -= 1;
    if (depth < 0) break;
    if ((char === '{' || char === '[' || char === ',') && (parts += 1) > maxJsonParts)
      throw refuse({
        path,
        message: `has more than ${maxJsonParts} {, [ and , outside its strings`,
      });
  }
  throw refuse({ path, message: 'is not JSON' });
}

const notAList = (member: string) =>
  new DomainError('invalid-input', `The body is not JSON of the form { "${member}": […] }.`);

const refuse = (...problems: Problem[]) =>
  new DomainError('invalid-input', 'The request is not valid.', { problems });

// A purpose is ten levels deep.
const maxDepth = 64;
const maxProblems = 20;
/** Shorter texts are parsed without yielding. */
const longText = 16_384;

/**
 * Parses untrusted JSON, yielding to the event loop if the text is long. Rejects with `invalid-input` text that is not
 * JSON, nests deeper than 64 levels or has more than 20,000 `{`, `[` and `,` (both checked before anything is built),
 * has a key `__proto__`, or contains text that PostgreSQL cannot store (U+0000, half a surrogate pair).
 */
async function parseJsonBody(text: string): Promise<unknown> {
  const { depth, parts } = measureJson(text, maxDepth);
  if (depth > maxDepth) throw tooMuch(`is nested deeper than ${maxDepth} levels`);
  if (parts > maxJsonParts)
    throw tooMuch(`has more than ${maxJsonParts} {, [ and , outside its strings`);
  const isLong = text.length > longText;
  if (isLong) await yieldToEventLoop();
  const value = parse(text);
  if (isLong) await yieldToEventLoop();
  const problems: Problem[] = [];
  collectUnwelcome(value, null, problems);
  if (problems.length > 0) {
    throw new DomainError('invalid-input', 'The request is not valid.', { problems });
  }
  if (isLong) await yieldToEventLoop();
  return value;
}

/** Whether PostgreSQL can store the text unchanged. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/**
 * Whether a percent-encoded text encodes UTF-8 (RFC 3986 section 2.5). A lenient decoder would turn each invalid byte
 * into U+FFFD, and make different texts equal.
 */
export function isPercentEncodedUtf8(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function tooMuch(what: string): DomainError {
  return new DomainError('invalid-input', `The body ${what}.`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new DomainError('invalid-input', `The body is not JSON${placeIn(text)}.`, { cause });
  }
}

/** Where the error is, if the text is short enough to search without yielding. */
function placeIn(text: string): string {
  const error = text.length > longText ? null : findJsonError(text);
  if (error === null) return '';
  return `: ${tellJsonError(error).replaceAll('the end of the file', 'the end of the body')}`;
}

/** A place in the document, turned into a pointer only if something is wrong. */
type Place = { parent: Place; key: string | number } | null;

function collectUnwelcome(value: unknown, place: Place, problems: Problem[]): void {
  if (problems.length >= maxProblems) return;
  if (typeof value === 'string') {
    if (!isStorable(value)) problems.push({ path: pointer(place), message: 'is not valid text' });
  } else if (Array.isArray(value)) {
    for (let key = 0; key < value.length; key += 1) {
      collectUnwelcome(value[key], { parent: place, key }, problems);
    }
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, item] of Object.entries(value)) {
      const inner = { parent: place, key };
      if (key === '__proto__' || !isStorable(key)) {
        problems.push({ path: pointer(inner), message: 'is not a valid name' });
      } else collectUnwelcome(item, inner, problems);
    }
  }
}

function pointer(place: Place): string {
  const path: (string | number)[] = [];
  for (let at = place; at !== null; at = at.parent) path.unshift(at.key);
  return jsonPointer(path);
}

/** A body is given up if no byte arrives for this long. Time in which the reader does not read does not count. */
const stalledMs = 60_000;
const chunkBytes = 65_536;
/**
 * How many bytes each compressed byte may become, beyond the first `freeBytes`. So the work is bounded by what was
 * sent. A table of measurements shrinks to a fortieth at best; gzip can reach a thousandth.
 */
const maxExpansion = 100;
const freeBytes = 1_048_576;

/**
 * Accepts a body of any size that is to be read as it arrives. Throws `unsupported-type` unless its media type is one
 * of these, its charset is UTF-8, and it is uncompressed or gzip.
 */
export function acceptBody(ctx: Context, types: string[], ownPace: WeakSet<IncomingMessage>): void {
  const { type, charset } = ctx.request;
  if (!types.includes(type)) throw unsupported(`The body must be ${types.join(' or ')}.`);
  if (!['', 'utf-8', 'utf8'].includes(charset.toLowerCase()))
    throw unsupported('The body must be encoded in UTF-8.');
  if (!['', 'identity', 'gzip'].includes(encodingOf(ctx)))
    throw unsupported('The body may be compressed only with gzip.');
  ownPace.add(ctx.req);
}

/** Opens an accepted body. `signal`: stop reading. */
function openBody(ctx: Context, signal: AbortSignal, longestMs = stalledMs): Body {
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
  // A decompressed body is read from another stream, which does not notice that the client has gone.
  const end = new EarlyEnd();
  const onClose = () => {
    if (!req.complete) end.reached(brokeOff());
  };
  const onAbort = () => end.reached(req.destroyed ? brokeOff() : stops());
  req.once('close', onClose);
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  // The answer still has to be written, so the connection stays open whatever happens to the body.
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
 * Ends a body early. It avoids `Promise.race` with one promise for the whole body: that promise would retain something
 * of each chunk.
 */
class EarlyEnd {
  #error: Error | undefined;
  #reject: ((error: Error) => void) | undefined;

  reached(error: Error): void {
    this.#error ??= error;
    this.#reject?.(this.#error);
  }

  /** Waits for `work`, at most `longestMs`, and stops at the early end. */
  async orSooner<T>(work: Promise<T>, longestMs: number): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const seconds = longestMs / 1_000;
    const timer = setTimeout(
      () => reject(new DomainError('too-slow', `No part of the body arrived for ${seconds} s.`)),
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
    return new DomainError('invalid-input', 'The body is not gzip, or is incomplete.', {
      cause: error,
    });
  return req.complete ? error : brokeOff(error);
}

const tooDense = () =>
  new DomainError(
    'invalid-input',
    `The body expands more than ${maxExpansion}-fold. Send it uncompressed or in smaller parts.`,
  );
const encodingOf = (ctx: Context) => ctx.get('content-encoding').trim().toLowerCase();
const unsupported = (message: string) => new DomainError('unsupported-type', message);
const stops = () => new DomainError('unavailable', 'The service is stopping.');
const brokeOff = (cause?: unknown) =>
  new DomainError('invalid-input', 'The request body ended early.', { cause });

/** What the outer middleware learns about a request before any route sees it. */
export type RequestState = Pick<
  RequestInfo,
  'requestId' | 'receivedTs' | 'now' | 'address' | 'isHttps'
> & {
  /** The bytes of a body that was read as a whole, before decoding. */
  bodyBytes?: Buffer;
};

/**
 * A request as handlers see it, without anything of Koa. It is a class because for a getter in an object literal V8
 * makes a new hidden class each time. That class is never young, and keeps the request until the next full collection.
 */
export class KoaRequestInfo implements RequestInfo {
  readonly requestId: string;
  readonly receivedTs: WallMs;
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

  /** Created on demand: most requests are over before their client could leave. */
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
