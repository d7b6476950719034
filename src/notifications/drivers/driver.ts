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

  constructor(
    verdict: DriverVerdict,
    reason: Reason,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
    this.name = 'DeliveryError';
    this.verdict = verdict;
    this.reason = reason;
  }
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
