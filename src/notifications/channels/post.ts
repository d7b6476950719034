import { lookup } from 'node:dns';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import { z } from 'zod';
import { isPrivateAddress, isPrivateHost } from '../../lib/address.ts';
import type { Clock, WallMs } from '../../lib/clock-readings.ts';
import type { Reason } from '../reasons.ts';
import { DeliveryError, type DriverVerdict, type LookupAll } from './channel.ts';

/** Settings of a provider that is reached over HTTP. */
export const providerUrl = z.url({ protocol: /^https?$/ });
export const providerTimeoutMs = z.int().min(100).max(60_000).default(10_000);

/**
 * Milliseconds to wait, from `Retry-After` (RFC 9110 section 10.2.3: seconds or a date); undefined if it is neither.
 */
export function readRetryAfter(text: string | null | undefined, nowTs: WallMs): number | undefined {
  if (text === null || text === undefined) return undefined;
  if (/^\d+$/.test(text.trim())) return Number(text) * 1_000;
  // oxlint-disable-next-line no-restricted-globals -- parses a date that was sent; reads no clock
  const ts = new Date(text).getTime();
  return Number.isNaN(ts) ? undefined : Math.max(0, ts - nowTs);
}

/** Why a connection or its answer failed, from the error code of Node.js or OpenSSL. */
export function reasonOfCode(
  code: unknown,
): Extract<Reason, 'no-answer' | 'tls-failed' | 'bad-answer'> {
  if (typeof code !== 'string') return 'no-answer';
  if (
    /^(ERR_TLS_|ERR_SSL_|EPROTO$|CERT_|CRL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH$|INVALID_CA$|INVALID_PURPOSE$|PATH_LENGTH_)/.test(
      code,
    )
  )
    return 'tls-failed';
  return code.startsWith('HPE_') ? 'bad-answer' : 'no-answer';
}

/** Redacts secrets from somebody else's text, which may repeat what it was sent. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets
    .filter((secret) => secret !== '')
    .toSorted((a, b) => b.length - a.length)
    .reduce((rest, secret) => rest.replaceAll(secret, '[redacted]'), text);
}

/** The reason that an account sees for an HTTP status other than success. */
export function reasonOf(status: number): Reason {
  if (status === 410) return 'recipient-gone';
  if (status === 401 || status === 403) return 'provider-login';
  return verdictOf(status) === 'again' ? 'provider-busy' : 'provider-refused';
}

/** What an HTTP status means for the next attempt: a client error stays, a server error may pass. */
export function verdictOf(status: number): DriverVerdict {
  if (status === 410) return 'gone';
  // The operator can fix 401 and 403; whatever still waits is then sent.
  const mayPass = [401, 403, 408, 425, 429].includes(status) || status >= 500;
  return mayPass ? 'again' : 'never';
}

/** Which addresses requests may reach, and how long one may take from its start to the status of the answer. */
export type PostOptions = {
  isPrivateAllowed: boolean;
  timeoutMs: number;
  /** Replaces the system's resolver. */
  lookupAll?: LookupAll;
};

const systemLookup: LookupAll = (hostname, callback) => lookup(hostname, { all: true }, callback);

/**
 * Posts a body to a URL that an account has chosen. Returns the status and the unparsed `Retry-After`; does not follow
 * redirects or read the answer's body. It looks the host name up once and connects to the addresses that it checked, so
 * a name that changes in between (DNS rebinding) gains nothing. Rejects with a `DeliveryError`.
 */
export async function postPublicly(
  url: string,
  request: PostOptions & { headers: Record<string, string>; body: string },
): Promise<{ status: number; retryAfter: string | undefined }> {
  const { isPrivateAllowed, timeoutMs, lookupAll = systemLookup, headers, body } = request;
  const { protocol, hostname } = new URL(url);
  if (!isPrivateAllowed && isPrivateHost(hostname)) throw refused(hostname);
  const start = protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const outgoing = start(url, {
      method: 'POST',
      headers: { ...headers, 'Content-Length': Buffer.byteLength(body) },
      lookup: checkedLookup(lookupAll, isPrivateAllowed),
      // No keep-alive: the next message must look the name up and check it again.
      agent: false,
      maxHeaderSize: 16_384,
    });
    const timer = setTimeout(
      () => outgoing.destroy(new Error(`No answer within ${timeoutMs} ms`)),
      timeoutMs,
    );
    outgoing.once('response', (response) => {
      const { statusCode: status = 0, headers: answered } = response;
      resolve({ status, retryAfter: answered['retry-after'] });
      response.once('error', () => undefined);
      response.destroy();
    });
    outgoing.once('error', (error) =>
      reject(error instanceof DeliveryError ? error : unanswered(error)),
    );
    outgoing.once('close', () => {
      clearTimeout(timer);
      reject(unanswered(new Error('The connection was closed without an answer')));
    });
    outgoing.end(body);
  });
}

/** One refused address refuses the name: otherwise the receiver could influence which one we connect to. */
function checkedLookup(lookupAll: LookupAll, isPrivateAllowed: boolean): LookupFunction {
  return (hostname, { all }, callback) => {
    lookupAll(hostname, (error, addresses) => {
      const [first] = addresses ?? [];
      if (error || !first) {
        callback(error ?? new Error(`${hostname} has no address`), '', 0);
        return;
      }
      if (!isPrivateAllowed && addresses.some(({ address }) => isPrivateAddress(address)))
        callback(refused(hostname), '', 0);
      else if (all) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}

const refused = (hostname: string) =>
  new DeliveryError('never', 'address-refused', `${hostname} resolves to a private address`);

const unanswered = (cause: Error) =>
  new DeliveryError(
    'again',
    reasonOfCode('code' in cause ? cause.code : undefined),
    `No answer: ${cause.message}`,
    { cause },
  );

/** How much of an answer we read; we do not wait for the rest. */
const maxAnswerBytes = 16_384;
/** How much of that goes into the log. */
const maxExcerpt = 300;

type PostRequest = {
  headers: Record<string, string>;
  body: string;
  timeoutMs: number;
  clock: Clock;
  /** What must not appear in the log if the answer repeats it. */
  secrets?: string[];
};

/** Posts a body and resolves if the answer is 2xx; rejects with a `DeliveryError`. */
export async function post(url: string, request: PostRequest): Promise<void> {
  const { headers, body, timeoutMs, clock, secrets = [] } = request;
  const signal = AbortSignal.timeout(timeoutMs);
  let response: Response;
  try {
    // Following a redirect would send the credentials to somebody else.
    response = await fetch(url, { method: 'POST', headers, body, signal, redirect: 'manual' });
  } catch (cause) {
    const { message, code } = causeOf(cause);
    throw new DeliveryError('again', reasonOfCode(code), `No answer: ${message}`, { cause });
  }
  const { status } = response;
  // The status decides: a provider whose answer never ends has accepted the message all the same.
  const answer = await readSome(response);
  if (status >= 200 && status < 300) return;
  const verdict = verdictOf(status) === 'again' ? 'again' : 'never';
  // Here 410 means that the provider's URL is gone, not the telephone.
  const reason = status === 410 ? 'provider-refused' : reasonOf(status);
  const excerpt = withoutSecrets(answer, secrets).slice(0, maxExcerpt);
  const retryAfterMs = readRetryAfter(response.headers.get('retry-after'), clock());
  throw new DeliveryError(verdict, reason, `Answered ${status}: ${excerpt}`, { retryAfterMs });
}

/** The beginning of an answer, or what has arrived of it when it breaks off or takes too long. */
async function readSome({ body }: Response): Promise<string> {
  if (!body) return '';
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    // Leaving the loop cancels the rest.
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      chunks.push(chunk.subarray(0, maxAnswerBytes - bytes));
      bytes += chunk.length;
      if (bytes >= maxAnswerBytes) break;
    }
  } catch {
    // Too slow, or cut off: what has arrived will do.
  }
  return Buffer.concat(chunks).toString();
}

/** fetch says only "fetch failed"; the reason is in the error's cause. */
function causeOf(error: unknown): { message: string; code?: unknown } {
  if (!(error instanceof Error)) return { message: String(error) };
  return error.cause instanceof Error ? error.cause : error;
}
