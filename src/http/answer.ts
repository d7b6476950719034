import { createHash } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import type { Readable } from 'node:stream';
import type { Context } from 'koa';
import { z } from 'zod';
import { DomainError } from '../errors.ts';
import { yieldToEventLoop } from '../lib/event-loop.ts';
import type { RequestState } from './body.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** An answer that is sent as it is produced: CSV, server-sent events. Created by `stream()`. */
export class Streamed {
  readonly contentType: string;
  readonly source: Readable | AsyncIterable<string | Uint8Array>;
  readonly status: number;

  constructor(
    contentType: string,
    source: Readable | AsyncIterable<string | Uint8Array>,
    status: number,
  ) {
    this.contentType = contentType;
    this.source = source;
    this.status = status;
  }
}

/** An answer that is JSON text already, because it is large or stored as text. Created by `jsonText()`. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Answers with existing JSON text, which is not serialized again for each request. */
export function jsonText(text: string): JsonText {
  return new JsonText(text);
}

/** Answers with a stream, which is destroyed when the client goes away. */
export function stream(
  contentType: string,
  source: Readable | AsyncIterable<string | Uint8Array>,
  status = 200,
): Streamed {
  return new Streamed(contentType, source, status);
}

/** Runs SQL within the transaction that creates something. */
export type InTransaction = {
  query(text: string, values?: unknown[]): Promise<{ rowCount: number | null }>;
};

/** Stores what was created, as compact JSON, within the transaction that creates it. */
export type Keep<M extends object> = (tx: InTransaction, made: M) => Promise<void>;

/**
 * Creates something, or returns what an earlier request with the same key created. `make` must call `keep` within its
 * transaction; `keep` is null if the request has no key.
 */
export type Once = <M extends object>(make: (keep: Keep<M> | null) => Promise<M>) => Promise<M>;

/** For a request without a key. */
export const eachTime: Once = (make) => make(null);

/** A request with a key. `fingerprint`: a hash of its method, path, query and body. */
export type KeyedRequest = {
  account: { accountId: number; sessionId: string; key?: object };
  key: string;
  fingerprint: Buffer;
  receivedTs: WallMs;
  signal: AbortSignal;
};

/** Answers a request with a key: with its earlier answer, or else with the text that `call` returns. */
export type RunOnce = (
  request: KeyedRequest,
  call: (once: Once) => Promise<string>,
) => Promise<string>;

const keyHeader = 'Idempotency-Key';
const maxLength = 255;

/** The header as the reference shows it. */
export const KeyHeader = z.object({
  [keyHeader]: z
    .string()
    .min(1)
    .max(maxLength)
    .optional()
    .meta({
      description:
        'Any text of your choice, such as a UUID, with or without quotes. Repeating the same ' +
        'request with the same key within 24 hours creates nothing again and returns the same ' +
        'answer. A different request with that key is answered 422.',
    }),
});

/** The header of a request that may only change one version of a thing, as the reference shows it. */
export const TagHeader = z.object({
  'If-Match': z
    .string()
    .optional()
    .meta({
      description:
        'The `ETag` of the version that this may change; otherwise the answer is 412. Absent, or ' +
        '`*`: any version.',
    }),
});

/**
 * draft-ietf-httpapi-idempotency-key-header section 2.1: a quoted string of structured fields; unquoted text is
 * accepted too. Null if there is none. Throws `invalid-input` for anything that is not a key.
 */
export function readKey(ctx: Context): string | null {
  const sent = ctx.get(keyHeader);
  if (sent === '') return null;
  const key = /^"(.*)"$/.exec(sent)?.[1] ?? sent;
  if (/^[\x20-\x7e]+$/.test(key) && key.length <= maxLength) return key;
  const message = `expected 1 to ${maxLength} printable ASCII characters`;
  throw new DomainError('invalid-input', 'The request is not valid.', {
    problems: [{ path: keyHeader, message }],
  });
}

/** Bytes hashed before the loop yields to other requests. */
const lengthAtOnce = 1_048_576;

/** The hash of a request's method, path, query and body. The body must have been read. */
export async function fingerprintOf(ctx: Context): Promise<Buffer> {
  const { bodyBytes: bytes = Buffer.alloc(0) } = ctx.state as RequestState;
  const hash = createHash('sha256').update(`${ctx.method} ${ctx.originalUrl}\n`);
  for (let at = 0; at < bytes.length; at += lengthAtOnce) {
    if (at > 0) await yieldToEventLoop();
    hash.update(bytes.subarray(at, at + lengthAtOnce));
  }
  return hash.digest();
}

/** How many requests a client may still make, by a token bucket. */
export type Allowance = {
  isAllowed: boolean;
  burst: number;
  left: number;
  fullAfterSeconds: number;
  windowSeconds: number;
  retryAfterSeconds: number;
};

/**
 * Sets the headers of draft-ietf-httpapi-ratelimit-headers once less than half is left. Throws `too-many-requests` if
 * nothing is left.
 */
export function applyRateLimit(ctx: Context, allowance: Allowance): void {
  const { isAllowed, burst, left, fullAfterSeconds, windowSeconds } = allowance;
  if (isAllowed && left > burst / 2) return;
  ctx.set('RateLimit-Policy', `"requests";q=${burst};w=${windowSeconds}`);
  ctx.set('RateLimit', `"requests";r=${left};t=${fullAfterSeconds}`);
  if (isAllowed) return;
  const { retryAfterSeconds } = allowance;
  throw new DomainError(
    'too-many-requests',
    'The account sends too many requests at once: wait before trying again.',
    {
      retryAfterSeconds,
    },
  );
}

export type FindAddress = (peer: string, forwardedFor: string) => string;

/**
 * Finds the client's address. `X-Forwarded-For` counts only as far as trusted proxies wrote it: read from the right,
 * the first address that is not a trusted proxy's is the client. `trusted` contains addresses and networks
 * (`10.0.0.0/8`); empty trusts nobody. Throws for an entry that is neither.
 */
export function trustProxies(trusted: string[]): FindAddress {
  const isTrusted = trusts(trusted);
  return (peer, forwardedFor) => {
    let address = plain(peer);
    const hops = forwardedFor === '' ? [] : forwardedFor.split(',');
    for (const hop of hops.toReversed()) {
      const before = plain(hop.trim());
      if (!isTrusted(address) || isIP(before) === 0) break;
      address = before;
    }
    return address;
  };
}

/** Returns whether an address is a trusted proxy's. Throws for an entry that is neither an address nor a network. */
export function trusts(trusted: string[]): (address: string) => boolean {
  const proxies = new BlockList();
  for (const entry of trusted) addNetwork(proxies, entry);
  return (address) =>
    isIP(address) !== 0 && proxies.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
}

function addNetwork(list: BlockList, entry: string): void {
  const [address = '', prefix] = entry.split('/');
  const version = isIP(address);
  if (version === 0) throw new Error(`A trusted proxy is an address or a network, not "${entry}".`);
  const family = version === 6 ? 'ipv6' : 'ipv4';
  if (prefix === undefined) list.addAddress(address, family);
  else list.addSubnet(address, Number(prefix), family);
}

/** An IPv4 address without the IPv4-mapped prefix that it has on a dual-stack socket. */
export function plain(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}
