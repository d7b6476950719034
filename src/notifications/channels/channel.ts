import { messageOf } from '../../lib/thrown.ts';
import type { Reason } from '../reasons.ts';

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
export function readRetryAfter(text: string | null | undefined, nowMs: number): number | undefined {
  if (text === null || text === undefined) return undefined;
  if (/^\d+$/.test(text.trim())) return Number(text) * 1_000;
  // oxlint-disable-next-line no-restricted-globals -- parses a date that was sent; reads no clock
  const ts = new Date(text).getTime();
  return Number.isNaN(ts) ? undefined : Math.max(0, ts - nowMs);
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
