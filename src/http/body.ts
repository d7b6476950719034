import bodyParser from 'koa-bodyparser';
import type { Context, Middleware } from 'koa';
import { DomainError } from '../errors.ts';
import { decodeUtf8 } from '../lib/json-text.ts';
import { isPercentEncodedUtf8, isStorable, parseJsonBody } from './json.ts';
import { parseListBody, type ListBody } from './list-body.ts';

const formType = 'application/x-www-form-urlencoded';

/**
 * `isForm`: what a page's form sends is read, and nothing else; JSON otherwise. `listBody`: JSON that is a
 * list, which has a limit of its own and is read element by element.
 */
export type BodyReader = (
  ctx: Context,
  of?: { isForm?: boolean; listBody?: ListBody },
) => Promise<unknown>;

/**
 * Reads a JSON body of at most `limitBytes`, counted before and after decompression and before it is
 * parsed. No body is `undefined`. Rejects with errors of status 413 or 415, or `invalid-input`; where
 * the body could not be read to its end, the answer then closes the connection: what follows on it
 * might be a part of this body.
 */
export function createBodyReader(limitBytes: number): BodyReader {
  const readers = new Map<number, Middleware>();
  const readerOf = (limit: number): Middleware => {
    const reader = readers.get(limit) ?? createTextReader(limit);
    readers.set(limit, reader);
    return reader;
  };
  return async (ctx, { isForm = false, listBody } = {}) => {
    const types = isForm ? [formType] : ['application/json', 'application/*+json'];
    const isOfType = ctx.request.is(types);
    if (isOfType === null || ctx.get('content-length') === '0') return isForm ? {} : undefined;
    if (isOfType === false) ctx.throw(415, `The body must be ${types[0]}`);
    if (!['', 'utf-8', 'utf8'].includes(ctx.request.charset.toLowerCase())) {
      ctx.throw(415, 'JSON is written in UTF-8');
    }
    await readAll(ctx, readerOf(listBody?.limitBytes ?? limitBytes));
    const { body } = ctx.request as { body?: unknown };
    const text = Buffer.isBuffer(body) ? decodeUtf8(body) : '';
    if (text === null) throw new DomainError('invalid-input', 'The body is not UTF-8.');
    if (listBody) return parseListBody(text, listBody);
    if (isForm) return readForm(text);
    return text === '' ? undefined : parseJsonBody(text);
  };
}

/** It reads bytes, not JSON: they are looked at before anything is built from them. */
function createTextReader(limitBytes: number): Middleware {
  return bodyParser({
    enableTypes: ['text'],
    extendTypes: { text: ['application/json', 'application/*+json', formType] },
    textLimit: limitBytes,
    encoding: null,
  });
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

async function readAll(ctx: Context, readText: Middleware): Promise<void> {
  const { req } = ctx;
  // Decompressed, a body is read from another stream, which does not hear that the client has gone.
  const gone = Promise.withResolvers<never>();
  const onClose = () => {
    if (!req.complete) gone.reject(new DomainError('invalid-input', 'The body broke off.'));
  };
  req.once('close', onClose);
  try {
    await Promise.race([readText(ctx, async () => {}), gone.promise]);
  } catch (error) {
    ctx.set('Connection', 'close');
    throw isOfZlib(error) ? malformed(ctx, error) : error;
  } finally {
    req.off('close', onClose);
  }
}

/** zlib's own codes (`Z_DATA_ERROR`), and those that Node gives to brotli's. */
function isOfZlib(error: unknown): error is Error {
  if (!(error instanceof Error) || !('code' in error)) return false;
  return /^(Z_|ERR__ERROR_|ERR_BROTLI_|BROTLI_)/.test(String(error.code));
}

function malformed(ctx: Context, cause: Error): DomainError {
  const encoding = ctx.get('content-encoding');
  return new DomainError('invalid-input', `The body is not ${encoding}.`, { cause });
}
