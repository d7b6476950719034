import closeWithGrace from 'close-with-grace';

/** npm passes on a Ctrl-C that the terminal has already sent here: that is still the first one. */
const sameSignalMs = 1_000;

/**
 * Calls `close` once when the process is asked to end (SIGINT, SIGTERM, SIGHUP) or when an error was
 * caught by nobody, and then exits: 0 after a signal, 1 after an error or when `close` takes longer
 * than `drainTimeoutMs`. Who asks again, later, does not want to wait: exit 1 at once.
 *
 * Where `onHangUp` is given, SIGHUP calls that instead, each time, and ends nothing.
 */
export function closeOnSignals(
  drainTimeoutMs: number,
  close: (reason: { signal?: string; err?: Error }) => Promise<void>,
  onHangUp: (() => void) | null = null,
): void {
  let askedAtMs: number | null = null;
  let asked: NodeJS.Signals | undefined;
  const own = ['SIGINT', 'SIGTERM'] as const;
  const grace = closeWithGrace(
    {
      delay: drainTimeoutMs,
      logger: console,
      skip: [...own, ...(onHangUp ? (['SIGHUP'] as const) : [])],
    },
    ({ err, signal = asked }) => close({ err, signal }),
  );
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
}
