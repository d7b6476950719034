import type { Logger } from '../log/logger.ts';
import type { DeliveryError } from './drivers/driver.ts';

/** Where the outbox writes. */
export type NotificationLog = Pick<Logger, 'debug' | 'info' | 'warn'>;

export type FailedAttempt = {
  notificationId: number;
  /** Of a webhook, with its port; null of all others. */
  host: string | null;
  /** The channel or the provider that was asked. */
  via: string;
  failure: DeliveryError;
  /** Whether it is tried again. */
  again: boolean;
};

export type UndeliveredLog = {
  /** An attempt to deliver failed: a line now, or counted for the receiver's next one. */
  note: (attempt: FailedAttempt) => void;
  /** Writes what was counted since lines that are a rest old, or all of it where the process ends. */
  flush: (options?: { isEnd?: boolean }) => void;
};

type Noted = { sinceMs: number; unwritten: number; newest: FailedAttempt };

/** A receiver that failed five times rests so long: more than a line in that time says nothing new. */
export const restMs = 900_000;

/** Receivers with lines of their own: accounts choose them, so their number has a bound. The others share lines. */
const maxReceivers = 1_000;

/**
 * Writes failed attempts: at most one line for each receiver in 15 minutes, with how many attempts it stands for. A
 * receiver is the host of a webhook; of a push, an SMS and a mail it is the provider together with the reason.
 */
export function createUndeliveredLog(log: NotificationLog, clock: () => number): UndeliveredLog {
  const receivers = new Map<string, Noted>();

  function write(attempt: FailedAttempt, count: number): void {
    const { notificationId, host, via, failure, again } = attempt;
    const { reason, message } = failure;
    const receiver = host === null ? {} : { receiver: host };
    // Only a fault of the service has a stack that helps.
    const why = reason === 'fault' ? { err: failure } : { why: message };
    log.warn(
      {
        event: 'notification.undelivered',
        via,
        ...receiver,
        count,
        reason,
        ...why,
        notificationId,
        again,
      },
      'Notifications could not be delivered.',
    );
  }

  const hasRested = ({ sinceMs }: Noted, nowMs: number) => Math.abs(nowMs - sinceMs) >= restMs;

  return {
    note(attempt) {
      const own = `${attempt.via} ${attempt.host ?? attempt.failure.reason}`;
      const key = receivers.has(own) || receivers.size < maxReceivers ? own : '';
      const noted = receivers.get(key);
      const nowMs = clock();
      if (noted && !hasRested(noted, nowMs)) {
        noted.unwritten += 1;
        noted.newest = attempt;
        return;
      }
      write(attempt, 1 + (noted?.unwritten ?? 0));
      receivers.set(key, { sinceMs: nowMs, unwritten: 0, newest: attempt });
    },
    flush({ isEnd = false } = {}) {
      const nowMs = clock();
      for (const [key, noted] of receivers) {
        if (!isEnd && !hasRested(noted, nowMs)) continue;
        if (noted.unwritten === 0) {
          receivers.delete(key);
          continue;
        }
        write(noted.newest, noted.unwritten);
        receivers.set(key, { ...noted, sinceMs: nowMs, unwritten: 0 });
      }
    },
  };
}
