import closeWithGrace from 'close-with-grace';
import type { Log } from '../log/logger.ts';

export type EndOptions = {
  longestMs: number;
  log: Log;
  /** Resolves with false where something was left unfinished. */
  close: (reason: { signal?: string; err?: Error }) => Promise<boolean>;
  onHangUp: (() => void) | null;
};

export type Ending = {
  /** Closes as a signal does, and then exits with this. */
  end(exitCode: number): void;
};

/** npm passes on a Ctrl-C that the terminal has already sent here: that is still the first one. */
const sameSignalMs = 1_000;

/**
 * Calls `close` once when the process is asked to end (SIGINT, SIGTERM, SIGHUP) or when nothing caught an
 * error, and then exits: 0 after a signal, 1 after an error, where something was left unfinished or
 * when `close` takes longer than `longestMs`. A second signal, a second later or more, exits with 1 at
 * once. Gives what ends it from inside.
 *
 * Where `onHangUp` is given, SIGHUP calls that instead, each time, and ends nothing.
 */
export function closeOnSignals({ longestMs, log, close, onHangUp }: EndOptions): Ending {
  let exitCode: number | undefined;
  let askedAtMs: number | null = null;
  let asked: NodeJS.Signals | undefined;
  const own = ['SIGINT', 'SIGTERM'] as const;
  const grace = closeWithGrace(
    {
      delay: longestMs,
      logger: undefined,
      skip: [...own, ...(onHangUp ? (['SIGHUP'] as const) : [])],
      onTimeout(afterMs) {
        log.error({ event: 'stop.killed', afterMs }, 'Stopping took too long and was broken off.');
        exitAsAsked();
      },
      onSecondSignal: logSecondSignal,
      onSecondError: (err) =>
        log.error({ event: 'stop.second-error', err }, 'Another error while stopping: exiting.'),
    },
    async ({ err, signal = asked }) => {
      try {
        const isWhole = await close({ ...(err && { err }), ...(signal && { signal }) });
        if (!isWhole) exitCode ??= 1;
      } catch (error) {
        log.error({ event: 'stop.failed', err: error }, 'Stopping failed.');
        exitCode ??= 1;
      }
      exitAsAsked();
    },
  );
  function exitAsAsked(): void {
    if (exitCode !== undefined) process.exit(exitCode);
  }
  function logSecondSignal(signal?: string): void {
    log.warn({ event: 'stop.second-signal', signal }, 'Asked to stop again: exiting at once.');
  }
  const onSignal = (signal: NodeJS.Signals) => {
    if (askedAtMs === null) {
      // oxlint-disable-next-line no-restricted-globals -- a signal that comes twice at once is one
      askedAtMs = performance.now();
      asked = signal;
      grace.close();
      // oxlint-disable-next-line no-restricted-globals -- a signal that comes twice at once is one
    } else if (performance.now() - askedAtMs > sameSignalMs) {
      logSecondSignal(signal);
      process.exit(1);
    }
  };
  for (const signal of own) process.on(signal, onSignal);
  if (onHangUp) process.on('SIGHUP', onHangUp);
  return {
    end(code) {
      exitCode = code;
      grace.close();
    },
  };
}
