import { z } from 'zod';
import type { RequestInfo } from './request.ts';

/**
 * An opaque `cursor` query parameter that carries `schema`'s value from one page to the next;
 * what was not made by `linkNext` is 400.
 */
export function cursorQuery<S extends z.ZodType>(schema: S) {
  return z
    .string()
    .max(2_048)
    .transform((text, context): z.output<S> => {
      const result = schema.safeParse(decode(text));
      if (result.success) return result.data;
      context.addIssue({ code: 'custom', message: 'is not a cursor of this list' });
      return z.NEVER;
    })
    .optional()
    .meta({
      description: 'Where the next page begins: taken from the Link header, never made up.',
    });
}

/** Adds `Link: <…>; rel="next"` (RFC 8288): the same request from `cursor` on. */
export function linkNext(request: RequestInfo, cursor: unknown): void {
  const [path = '', search = ''] = request.url.split('?', 2);
  const query = new URLSearchParams(search);
  query.set('cursor', Buffer.from(JSON.stringify(cursor)).toString('base64url'));
  request.setHeader('Link', `<${path}?${query.toString()}>; rel="next"`);
}

function decode(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as unknown;
  } catch {
    return undefined;
  }
}
