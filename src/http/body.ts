import type { Readable } from 'node:stream';
import { createBrotliDecompress, createUnzip } from 'node:zlib';
import type { Context } from 'koa';
import { DomainError } from '../errors.ts';
import { JoinedChunks } from '../lib/joined-chunks.ts';
import { decodeUtf8 } from '../lib/json.ts';
import { isPercentEncodedUtf8, isStorable, parseJsonBody } from './json.ts';
import { parseListBody, type ListBody } from './list-body.ts';
import type { RequestState } from './request-info.ts';
import type { Auth } from './request.ts';

const formType = 'application/x-www-form-urlencoded';

/** What of a route says how its body is read. */
type BodyOf = { auth: Auth; admit?: unknown; isForm?: boolean; listBody?: ListBody };

/** A JSON body, or a form where the route has `isForm`. Without a route: as one that needs a login. */
export type BodyReader = (ctx: Context, of?: BodyOf) => Promise<unknown>;

/** A body of somebody who has not logged in: credentials, a link's token, a form. */
const anonymousLimitBytes = 65_536;

/** The largest body a route takes, in bytes, of which `limitBytes` is the configured one. */
function bodyLimit({ auth, admit, listBody }: BodyOf, limitBytes: number): number {
  if (listBody) return listBody.limitBytes;
  return isAnonymous({ auth, admit }) ? Math.min(limitBytes, anonymousLimitBytes) : limitBytes;
}

/** Whether a route reads bodies before anybody knows whose they are: the handler judges a `token`. */
export const isAnonymous = ({ auth, admit }: Pick<BodyOf, 'auth' | 'admit'>) =>
  !admit && (auth === 'none' || auth === 'token');

/**
 * The bytes that a body may have: what is announced, or the route's limit where nothing says how many follow. Throws an
 * error of status 413 where more than the limit is announced.
 */
export function expectBody(ctx: Context, of: BodyOf, limitBytes: number): number {
  const most = bodyLimit(of, limitBytes);
  if (ctx.get('content-encoding') !== '' || ctx.get('transfer-encoding') !== '') return most;
  const announced = Number(ctx.get('content-length')) || 0;
  if (announced > most) throw tooLarge(of, most);
  return announced;
}

/**
 * Reads a JSON body of at most `limitBytes`, or of 64 KiB where nobody has to log in, counted after
 * decompression and before it is parsed. No body is `undefined`. Rejects with errors of status 413 or 415, or `invalid-input`; where
 * the body could not be read to its end, the answer then closes the connection: what follows on it
 * might be a part of this body.
 */
export function createBodyReader(limitBytes: number): BodyReader {
  return async (ctx, of = { auth: 'account' }) => {
    const { isForm = false, listBody } = of;
    const types = isForm ? [formType] : ['application/json', 'application/*+json'];
    const isOfType = ctx.request.is(types);
    if (isOfType === null || ctx.get('content-length') === '0') return isForm ? {} : undefined;
    if (isOfType === false) ctx.throw(415, `The body must be ${types[0]}`);
    if (!['', 'utf-8', 'utf8'].includes(ctx.request.charset.toLowerCase())) {
      ctx.throw(415, 'JSON is written in UTF-8');
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

/** The fields of a form; of one that is there twice the last. Throws `invalid-input`. */
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

/** All bytes of the body, decompressed. Where it rejects, the answer closes the connection. */
async function readAll(ctx: Context, of: BodyOf, limitBytes: number): Promise<Buffer> {
  try {
    expectBody(ctx, of, limitBytes);
    return await join(ctx, decompressed(ctx), of, bodyLimit(of, limitBytes));
  } catch (error) {
    ctx.set('Connection', 'close');
    throw isOfZlib(error) ? malformed(ctx, error) : error;
  }
}

/** RFC 9110 section 8.4.1; `deflate` with zlib's header, and `gzip`, are told from one another by their first bytes. */
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
      // It may fail once more, at what came before it was cut off.
      source.on('error', () => {}).destroy();
    };
    const fail = (error: Error): void => {
      end();
      req.pause();
      joined.clear();
      reject(error);
    };
    const onData = (chunk: Buffer): void => {
      if (joined.hasRoom(chunk)) joined.add(chunk);
      else fail(tooLarge(of, most));
    };
    const onEnd = (): void => {
      end();
      resolve(joined.bytes);
    };
    const onError = (error: Error): void => fail(source === req ? brokeOff() : error);
    // Decompressed, a body is read from another stream, which does not hear that the client has gone.
    const onClose = (): void => {
      if (!req.complete) fail(brokeOff());
    };
    source.on('data', onData).on('end', onEnd).on('error', onError);
    req.on('close', onClose);
  });
}

function tooLarge(of: BodyOf, most: number): Error {
  const why = isAnonymous(of) ? ', the most that is read without a login' : '';
  const message = `The body has more than ${most} bytes${why}`;
  return Object.assign(new Error(message), { status: 413 });
}

const brokeOff = () => new DomainError('invalid-input', 'The body broke off.');

/** zlib's own codes (`Z_DATA_ERROR`), and those that Node gives to brotli's. */
function isOfZlib(error: unknown): error is Error {
  if (!(error instanceof Error) || !('code' in error)) return false;
  return /^(Z_|ERR__ERROR_|ERR_BROTLI_|BROTLI_)/.test(String(error.code));
}

function malformed(ctx: Context, cause: Error): DomainError {
  const encoding = ctx.get('content-encoding');
  return new DomainError('invalid-input', `The body is not ${encoding}.`, { cause });
}
