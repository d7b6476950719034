import { createLimitedLines } from '../log/limited-lines.ts';
import type { Logger } from '../log/logger.ts';
import type { DeliveryError } from './channels/channel.ts';
import { restAfterFailuresMs } from './outbox.ts';
import type { Clock } from '../lib/clock-readings.ts';

/** Where the outbox writes. */
export type NotificationLog = Pick<Logger, 'debug' | 'info' | 'warn'>;

export type FailedAttempt = {
  /** What was to be delivered, by its number. */
  about: { notificationId: number } | { mailId: number };
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

/** Receivers with lines of their own: accounts choose them, so their number has a bound. The others are counted together. */
const maxReceivers = 1_000;

/**
 * Writes failed attempts: at most one line for each receiver in 15 minutes, with how many attempts it stands for. A
 * receiver is the host of a webhook; of a push, an SMS and a mail it is the provider together with the reason. `warn`
 * adds the event.
 */
export function createUndeliveredLog(
  warn: (fields: Record<string, unknown>) => void,
  clock: Clock,
): UndeliveredLog {
  function write({ about, host, via, failure, again }: FailedAttempt, count: number): void {
    const { reason, message } = failure;
    const receiver = host === null ? {} : { receiver: host };
    // Only a fault of the service has a stack that helps.
    const why = reason === 'fault' ? { err: failure } : { why: message };
    warn({ via, ...receiver, count, reason, ...why, ...about, again });
  }
  const lines = createLimitedLines<FailedAttempt>({
    clock,
    // A receiver that failed five times rests so long: more than a line in that time says nothing new.
    spanMs: restAfterFailuresMs,
    linesPerKey: 1,
    maxKeys: maxReceivers,
    write: (attempt, before) => write(attempt, before + 1),
    writeCounted(counted, others) {
      for (const { of, count } of counted) write(of, count);
      if (others > 0) warn({ count: others });
    },
  });
  return {
    note: (attempt) =>
      lines.note(`${attempt.via} ${attempt.host ?? attempt.failure.reason}`, attempt),
    flush: lines.flush,
  };
}
