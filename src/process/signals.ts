import closeWithGrace from 'close-with-grace';

export type EndOptions = {
  longestMs: number;
  close: (reason: { signal?: string; err?: Error }) => Promise<void>;
  onHangUp: (() => void) | null;
};

export type Ending = {
  /** Closes as a signal does, and then exits with this. */
  end(exitCode: number): void;
};

/** npm passes on a Ctrl-C that the terminal has already sent here: that is still the first one. */
const sameSignalMs = 1_000;

/**
 * Calls `close` once when the process is asked to end (SIGINT, SIGTERM, SIGHUP) or when an error was
 * caught by nobody, and then exits: 0 after a signal, 1 after an error or when `close` takes longer
 * than `longestMs`. Who asks again, later, does not want to wait: exit 1 at once. Gives what ends it
 * from inside.
 *
 * Where `onHangUp` is given, SIGHUP calls that instead, each time, and ends nothing.
 */
export function closeOnSignals({ longestMs, close, onHangUp }: EndOptions): Ending {
  let exitCode: number | undefined;
  let askedAtMs: number | null = null;
  let asked: NodeJS.Signals | undefined;
  const own = ['SIGINT', 'SIGTERM'] as const;
  const grace = closeWithGrace(
    {
      delay: longestMs,
      logger: console,
      skip: [...own, ...(onHangUp ? (['SIGHUP'] as const) : [])],
      onTimeout(ms) {
        exitAsAsked();
        process.stderr.write(`killed by timeout (${ms}ms)\n`);
      },
    },
    async ({ err, signal = asked }) => {
      await close({ err, signal }).finally(exitAsAsked);
    },
  );
  function exitAsAsked(): void {
    if (exitCode !== undefined) process.exit(exitCode);
  }
  const onSignal = (signal: NodeJS.Signals) => {
    if (askedAtMs === null) {
      askedAtMs = performance.now();
      asked = signal;
      grace.close();
    } else if (performance.now() - askedAtMs > sameSignalMs) {
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
