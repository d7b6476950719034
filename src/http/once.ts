import { createHash } from 'node:crypto';
import type { Context } from 'koa';
import { z } from 'zod';
import { DomainError } from '../errors.ts';
import { nextTurn } from '../lib/in-turns.ts';
import type { RequestState } from './request-info.ts';

/** Whatever runs SQL within the transaction that makes something. */
export type InTransaction = {
  query(text: string, values?: unknown[]): Promise<{ rowCount: number | null }>;
};

/** Writes down, within the transaction that makes something, what it makes: JSON, as short as can be. */
export type Keep<M extends object> = (tx: InTransaction, made: M) => Promise<void>;

/**
 * Makes something, or gives what an earlier request with the same key made. `make` has to call `keep`
 * within its transaction; it is null where the request has no key.
 */
export type Once = <M extends object>(make: (keep: Keep<M> | null) => Promise<M>) => Promise<M>;

/** Of a request without a key. */
export const eachTime: Once = (make) => make(null);

/** A request with a key. `fingerprint`: of its method, path, query and body. */
export type KeyedRequest = {
  account: { accountId: number; sessionId: string; key?: object };
  key: string;
  fingerprint: Buffer;
  receivedTs: number;
  signal: AbortSignal;
};

/** Answers a request with a key: as it was answered before, or by `call`, which gives the answer as text. */
export type RunOnce = (
  request: KeyedRequest,
  call: (once: Once) => Promise<string>,
) => Promise<string>;

const keyHeader = 'Idempotency-Key';
const maxLength = 255;

/** As the reference shows it. */
export const KeyHeader = z.object({
  [keyHeader]: z
    .string()
    .min(1)
    .max(maxLength)
    .optional()
    .meta({
      description:
        'Any text of your choice, such as a UUID, with or without quotes. The same request with the same key ' +
        'makes nothing again within 24 hours, and has the same answer; another one with it is answered 422.',
    }),
});

/**
 * draft-ietf-httpapi-idempotency-key-header section 2.1: a string of structured fields, in quotes; also
 * taken without them. Null where there is none; throws `invalid-input` for what is no key.
 */
export function readKey(ctx: Context): string | null {
  const sent = ctx.get(keyHeader);
  if (sent === '') return null;
  const key = /^"(.*)"$/.exec(sent)?.[1] ?? sent;
  if (/^[\x20-\x7e]+$/.test(key) && key.length <= maxLength) return key;
  const message = `expected 1 to ${maxLength} printable characters of ASCII`;
  throw new DomainError('invalid-input', 'The request is not valid.', {
    problems: [{ path: keyHeader, message }],
  });
}

/** Hashed before others have their turn. */
const lengthInTurn = 1_048_576;

/** Of a request whose body was read: of its method, path, query and body. */
export async function fingerprintOf(ctx: Context): Promise<Buffer> {
  const { bodyBytes: bytes = Buffer.alloc(0) } = ctx.state as RequestState;
  const hash = createHash('sha256').update(`${ctx.method} ${ctx.originalUrl}\n`);
  for (let at = 0; at < bytes.length; at += lengthInTurn) {
    if (at > 0) await nextTurn();
    hash.update(bytes.subarray(at, at + lengthInTurn));
  }
  return hash.digest();
}
