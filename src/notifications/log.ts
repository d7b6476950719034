import { createLimitedLines } from '../log/limited-lines.ts';
import type { DeliveryError } from './channels/channel.ts';
import { restAfterFailuresMs } from './outbox.ts';
import type { Clock } from '../lib/clock-readings.ts';

type FailedAttempt = {
  /** The message that could not be delivered. */
  about: { notificationId: number } | { mailId: number };
  /** Host and port of a webhook; null for other channels. */
  host: string | null;
  /** The channel or provider. */
  via: string;
  failure: DeliveryError;
  /** Whether it will be tried again. */
  again: boolean;
};

export type UndeliveredLog = {
  /** Reports a failed attempt: writes a line now, or counts it for the receiver's next line. */
  note: (attempt: FailedAttempt) => void;
  /** Writes the counts that have waited for longer than a rest; at the end of the process, all of them. */
  flush: (options?: { isEnd?: boolean }) => void;
};

/**
 * Receivers with lines of their own. Accounts choose receivers, so this needs a bound; the rest are counted together.
 */
const maxReceivers = 1_000;

/**
 * Logs failed attempts: at most one line for each receiver in 15 minutes, with the number of attempts. A receiver is a
 * webhook's host; for a push message, an SMS or a mail it is the provider together with the reason. `warn` adds the
 * event.
 */
export function createUndeliveredLog(
  warn: (fields: Record<string, unknown>) => void,
  clock: Clock,
): UndeliveredLog {
  function write({ about, host, via, failure, again }: FailedAttempt, count: number): void {
    const { reason, message } = failure;
    const receiver = host === null ? {} : { receiver: host };
    // A stack helps only if the fault is our own.
    const why = reason === 'fault' ? { err: failure } : { why: message };
    warn({ via, ...receiver, count, reason, ...why, ...about, again });
  }
  const lines = createLimitedLines<FailedAttempt>({
    clock,
    // A receiver rests this long after five failures, so more lines would say nothing new.
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
