import bodyParser from 'koa-bodyparser';
import type { Context, Middleware } from 'koa';
import { parseJson } from './json.ts';

export type BodyReader = (ctx: Context) => Promise<unknown>;

/**
 * Reads a JSON body of at most `limitBytes`, counted before and after decompression and before it is
 * parsed. No body is `undefined`. Throws errors with status 413 or 415, or `invalid-input`.
 */
export function createBodyReader(limitBytes: number): BodyReader {
  // It reads text, not JSON: the text is looked at before anything is built from it.
  const readText: Middleware = bodyParser({
    enableTypes: ['text'],
    extendTypes: { text: ['application/json', 'application/*+json'] },
    textLimit: limitBytes,
    encoding: 'utf-8',
  });
  return async (ctx) => {
    const isJson = ctx.request.is('application/json', 'application/*+json');
    if (isJson === null || ctx.get('content-length') === '0') return undefined;
    if (isJson === false) ctx.throw(415, 'The body must be application/json');
    if (!['', 'utf-8', 'utf8'].includes(ctx.request.charset.toLowerCase())) {
      ctx.throw(415, 'JSON is written in UTF-8');
    }
    await readText(ctx, async () => {});
    const { body } = ctx.request as { body?: unknown };
    return typeof body === 'string' && body !== '' ? parseJson(body) : undefined;
  };
}
