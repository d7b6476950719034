import closeWithGrace from 'close-with-grace';
import type { Log } from '../log/logger.ts';

type EndOptions = {
  longestMs: number;
  log: Log;
  /** Resolves with false if something was left unfinished. */
  close: (reason: { signal?: string; err?: Error }) => Promise<boolean>;
  onHangUp: (() => void) | null;
};

type Ending = {
  /** Closes as after a signal, then exits with this code. */
  end(exitCode: number): void;
};

/** npm forwards a Ctrl-C that the terminal has already sent here; the second one does not count. */
const sameSignalMs = 1_000;

/**
 * Calls `close` once when the process is asked to end (SIGINT, SIGTERM, SIGHUP) or after an uncaught error, then exits.
 * The exit code is 0 after a signal; 1 after an error, if something was left unfinished, or if `close` takes longer
 * than `longestMs`. A second signal, at least a second later, exits with 1 at once. Returns a way to end the process
 * from inside.
 *
 * If `onHangUp` is given, SIGHUP calls it each time instead, and ends nothing.
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
        log.error({ event: 'stop.killed', afterMs }, 'Stopping took too long and was aborted.');
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

type ListenAddress = { host: string; port: number };
export type Addresses = {
  http?: ListenAddress;
  mqtt?: ListenAddress;
  mqtts?: ListenAddress;
  /** For a connector process; others accept it on HTTP's port. */
  webSocket?: ListenAddress;
  metrics?: ListenAddress;
  health?: ListenAddress;
};

/** Where the service listens and what to try next, for people. */
export function describeReady(
  { http, mqtt, mqtts, webSocket, metrics, health }: Addresses,
  hasConsole = false,
): string[] {
  const listens = [
    http && `HTTP on ${at(http)}`,
    mqtt && `MQTT on ${at(mqtt)}`,
    mqtts && `MQTT over TLS on ${at(mqtts)}`,
    webSocket && `MQTT over WebSocket on ${at(webSocket)}`,
    metrics && `metrics on ${at(metrics)}`,
    health && `health on ${at(health)}`,
  ].filter((line) => line !== undefined);
  const lines = [`Sensorium listens: ${listens.join(', ')}.`];
  if (!http) return lines;
  const url = `http://${at({ ...http, host: reachable(http.host) })}`;
  return [
    ...lines,
    'Try next:',
    ...(hasConsole ? [`  open ${url} in a browser`] : []),
    `  curl ${url}/v2/accounts -H 'Content-Type: application/json' -d '{"email":"you@example.com","password":"correct horse"}'`,
    `  npm run simulate -- --devices 100 --seconds 30 --url ${url}`,
    `  open ${url}/docs for the HTTP and MQTT reference`,
  ];
}

function at({ host, port }: ListenAddress): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** An address that listens everywhere is not one to connect to. */
function reachable(host: string): string {
  return host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
}
