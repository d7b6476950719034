import { lookup, type LookupAddress } from 'node:dns';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import { isPrivateAddress, isPrivateHost } from '../../lib/address.ts';
import { messageOf } from '../../lib/thrown.ts';
import type { Reason } from '../reasons.ts';
import type { Clock, WallMs } from '../../lib/clock-readings.ts';

/** What a driver hands over; `id` is the same at every attempt, so that a receiver can tell a repetition. */
export type OutgoingMessage = {
  id: number;
  recipient: string;
  title: string;
  body: string;
  /** Where the event comes from, for an app that shows more than the text. */
  data: Record<string, string | number>;
};

/** Hands notifications to one service outside. */
export type Driver = {
  /** Stands in the outcome. */
  name: string;
  /** It writes to the log, and reaches nobody. */
  isLog?: boolean;
  /** Resolves once the service has taken the message over; rejects with a `DeliveryError`. */
  send: (message: OutgoingMessage) => Promise<void>;
  close: () => Promise<void>;
};

/**
 * `again`: it may work later. `never`: this message cannot be delivered. `gone`: nothing can be
 * delivered to this recipient any more.
 */
export type DriverVerdict = 'again' | 'never' | 'gone';

/** `reason` is what the account is told, `message` what the provider said: for the operator only. */
export class DeliveryError extends Error {
  readonly verdict: DriverVerdict;
  readonly reason: Reason;
  /** So long, in milliseconds, whoever was asked wants to be left alone. */
  readonly retryAfterMs: number | undefined;

  constructor(
    verdict: DriverVerdict,
    reason: Reason,
    message: string,
    options: { cause?: unknown; retryAfterMs?: number | undefined } = {},
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.name = 'DeliveryError';
    this.verdict = verdict;
    this.reason = reason;
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** `Retry-After` of RFC 9110 section 10.2.3, seconds or a date, in milliseconds from now on; absent where it is neither. */
export function readRetryAfter(text: string | null | undefined, nowTs: WallMs): number | undefined {
  if (text === null || text === undefined) return undefined;
  if (/^\d+$/.test(text.trim())) return Number(text) * 1_000;
  // oxlint-disable-next-line no-restricted-globals -- parses a date that was sent; reads no clock
  const ts = new Date(text).getTime();
  return Number.isNaN(ts) ? undefined : Math.max(0, ts - nowTs);
}

/** Why a connection, or the answer on it, came to nothing, by the code that Node.js and OpenSSL give. */
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

/** A text of somebody else's that may repeat what was sent, without what must not be in the log. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets
    .filter((secret) => secret !== '')
    .toSorted((a, b) => b.length - a.length)
    .reduce((rest, secret) => rest.replaceAll(secret, '[redacted]'), text);
}

/** A driver that fails in another way has a fault of its own; the message may yet get through. */
export function asDeliveryError(error: unknown): DeliveryError {
  if (error instanceof DeliveryError) return error;
  return new DeliveryError('again', 'fault', messageOf(error), { cause: error });
}

/** What an account is told of an HTTP status that is no success. */
export function reasonOf(status: number): Reason {
  if (status === 410) return 'recipient-gone';
  if (status === 401 || status === 403) return 'provider-login';
  return verdictOf(status) === 'again' ? 'provider-busy' : 'provider-refused';
}

/** What an HTTP status means for the next attempt: the caller's fault stays, the server's may pass. */
export function verdictOf(status: number): DriverVerdict {
  if (status === 410) return 'gone';
  // 401 and 403 are the operator's to mend, and what waits is then sent.
  const mayPass = [401, 403, 408, 425, 429].includes(status) || status >= 500;
  return mayPass ? 'again' : 'never';
}

/** Where requests may go, and how long one may take from its beginning to the answer's status. */
export type PostOptions = {
  isPrivateAllowed: boolean;
  timeoutMs: number;
  /** Stands in for the system's own. */
  lookupAll?: LookupAll;
};

export type LookupAll = (
  hostname: string,
  callback: (error: Error | null, addresses: LookupAddress[]) => void,
) => void;

const systemLookup: LookupAll = (hostname, callback) => lookup(hostname, { all: true }, callback);

/**
 * Posts a body to an address that a tenant has chosen, and gives the status of the answer, and its `Retry-After`
 * as it was written. Redirects are not followed, the answer's body is not read. What a name leads to is looked up once: what was checked is
 * what is connected to, however often the name changes its mind. Rejects with a `DeliveryError`.
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
      // No connection is kept: a later message looks the name up, and checks it, again.
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

/** Where one of the addresses is refused all are: which one is taken would be up to the receiver. */
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

/** So much of an answer is read; the rest is not waited for. */
const maxAnswerBytes = 16_384;
/** So much of it goes into the log. */
const maxExcerpt = 300;

type PostRequest = {
  headers: Record<string, string>;
  body: string;
  timeoutMs: number;
  clock: Clock;
  /** What of it must not be in the log, should the answer repeat it. */
  secrets?: string[];
};

/** Posts a body and resolves when it was accepted (2xx); rejects with a `DeliveryError`. */
export async function post(url: string, request: PostRequest): Promise<void> {
  const { headers, body, timeoutMs, clock, secrets = [] } = request;
  const signal = AbortSignal.timeout(timeoutMs);
  let response: Response;
  try {
    // A redirect would carry credentials to somebody else.
    response = await fetch(url, { method: 'POST', headers, body, signal, redirect: 'manual' });
  } catch (cause) {
    const { message, code } = causeOf(cause);
    throw new DeliveryError('again', reasonOfCode(code), `No answer: ${message}`, { cause });
  }
  const { status } = response;
  // The status decides: a provider whose answer never ends has taken the message all the same.
  const answer = await readSome(response);
  if (status >= 200 && status < 300) return;
  const verdict = verdictOf(status) === 'again' ? 'again' : 'never';
  // What is gone is the address of the provider, not a telephone.
  const reason = status === 410 ? 'provider-refused' : reasonOf(status);
  const excerpt = withoutSecrets(answer, secrets).slice(0, maxExcerpt);
  const retryAfterMs = readRetryAfter(response.headers.get('retry-after'), clock());
  throw new DeliveryError(verdict, reason, `Answered ${status}: ${excerpt}`, { retryAfterMs });
}

/** The beginning of an answer; what is there of it when it breaks off or takes too long. */
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
    // Too slow, or cut off.
  }
  return Buffer.concat(chunks).toString();
}

/** fetch says "fetch failed" and keeps the reason in its cause. */
function causeOf(error: unknown): { message: string; code?: unknown } {
  if (!(error instanceof Error)) return { message: String(error) };
  return error.cause instanceof Error ? error.cause : error;
}
