import { pino, type DestinationStream } from 'pino';
import pretty from 'pino-pretty';
import { describeError, type DescribedError } from './describe-error.ts';
import { hidePrivate } from './hide-private.ts';
import type { LogBindings, LogContext, Logger, ServiceLog, Write } from './logger.ts';

/** Members that hold what opens something, at the top or one or two levels down. */
const secretNames = [
  'password',
  'passwordHash',
  'token',
  'refreshToken',
  'accountAuthToken',
  'deviceAuthToken',
  'authorization',
  'cookie',
  'secret',
];

/** Of pino. */
const warnLevel = 40;

export type LogOptions = {
  level: string;
  /** For people rather than for machines: one coloured line each. */
  isTerminal: boolean;
  /** The part of the service that this process is: in every line. */
  role: string;
  /** The connector that this process is; absent where it may be several. */
  connectorId?: number | undefined;
  destination?: DestinationStream;
};

/**
 * JSON lines on standard output (pretty on a terminal), with passwords, tokens and e-mail addresses
 * blacked out. `event` comes first and what all lines have comes last: a filter such as fail2ban's finds
 * what it reads at the beginning, before anything that a stranger chose.
 */
export function createLog(options: LogOptions): ServiceLog {
  const { level, isTerminal, role, connectorId } = options;
  const { destination: to } = options;
  const destination = isTerminal ? prettyLines(to) : (to ?? pino.destination(1));
  const lines = pino(
    {
      level,
      base: undefined,
      serializers: { err: describeError },
      redact: {
        paths: secretNames.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]),
        censor: '[redacted]',
      },
    },
    { write: (line) => destination.write(hidePrivate(line)) },
  );
  const ofProcess = { role, ...(connectorId === undefined ? {} : { connectorId }) };
  return { child: (bindings) => loggerOf(lines, { ...bindings, ...ofProcess }) };
}

function loggerOf(lines: pino.Logger, bindings: LogBindings & { role: string }): Logger {
  const write =
    (level: keyof Pick<Logger, 'debug' | 'info' | 'warn' | 'error' | 'fatal'>): Write =>
    (context: LogContext, message) =>
      lines[level]({ ...context, ...bindings }, message);
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    fatal: write('fatal'),
    isLevelEnabled: (level) => lines.isLevelEnabled(level),
  };
}

/** A terminal shows one process: what all its lines have, and what their sentences say, is left out. */
function prettyLines(destination?: DestinationStream): DestinationStream {
  const lines = pretty({
    destination: destination ?? 1,
    ignore: 'pid,hostname,role,component,connectorId,event,signal,delayMs,unfinished',
    // Whoever has to do something about it looks the code up in docs/operations.md.
    messageFormat: ({ msg, level, event }) =>
      Number(level) >= warnLevel ? `${String(msg)} [${String(event)}]` : String(msg),
    translateTime: 'SYS:HH:MM:ss',
    singleLine: true,
    sync: true,
  });
  return { write: (line) => void lines.write(withoutStack(line)) };
}

/** What is no error of the service is a line on a terminal: its reason, without where in the code. */
function withoutStack(line: string): string {
  const { err, ...rest } = JSON.parse(line) as { level: number; err?: DescribedError };
  if (err === undefined || rest.level > warnLevel) return line;
  return `${JSON.stringify({ ...rest, why: reasonsOf(err) })}\n`;
}

function reasonsOf({ message, cause }: DescribedError): string {
  return cause === undefined ? message : `${message} ${reasonsOf(cause)}`;
}
