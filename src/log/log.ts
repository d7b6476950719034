import { type DestinationStream, pino } from 'pino';
import pretty from 'pino-pretty';
import { TokenBucket } from '../lib/token-bucket.ts';
import type { LogEvent } from './events.ts';
import type { LogBindings, LogContext, Logger, ServiceLog, Write } from './logger.ts';

/** Members that contain credentials, at the top or one or two levels down. */
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

/** pino's number for this level. */
const warnLevel = 40;

/** The longest line, and the longest text in a line that would be longer, in characters. */
const maxLine = 16_384;
const maxText = 1_024;
const maxEntries = 32;

/**
 * Lines of one event that may be written at once, and per second. In an outage every request fails, and strangers may
 * send any number of them. Writing the lines must not cost more than the requests do.
 */
const lineRate = { perSecond: 20, burst: 100 };
/** How often, at most, the number of omitted lines is logged. */
const omittedEveryMs = 10_000;
/**
 * Their writers have limits of their own (connector/device/refused-logins.ts), because tools that ban clients read
 * every line.
 */
const ownLimit = new Set<LogEvent>(['mqtt.login-refused', 'http.login-refused']);

type LogOptions = {
  level: string;
  /** For people rather than machines: one coloured line each. */
  isTerminal: boolean;
  /** The part of the service that this process runs, in every line. */
  role: string;
  /** The connector that this process runs; absent if it may run several. */
  connectorId?: number | undefined;
  destination?: DestinationStream;
  /** A clock that never jumps, in ms; the machine's if absent. */
  monotonicClock?: () => number;
};

/**
 * Writes JSON lines to standard output (formatted on a terminal), with passwords, tokens and e-mail addresses redacted.
 * `event` comes first, and members that all lines share come last, so that a filter such as fail2ban's finds what it
 * needs before any text that a stranger chose. The length of a line and the rate of an event are limited. Omitted lines
 * are counted and reported (`log.lines-omitted`).
 */
export function createLog(options: LogOptions): ServiceLog {
  const {
    level,
    isTerminal,
    role,
    connectorId,
    // oxlint-disable-next-line no-restricted-globals -- how many lines a second are written
    monotonicClock = () => performance.now(),
  } = options;
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
    { write: (line) => destination.write(showMarks(hidePrivate(shorten(line)))) },
  );
  const ofProcess = { role, ...(connectorId === undefined ? {} : { connectorId }) };
  const mayWrite = limitLines(monotonicClock, (of, omitted) =>
    lines.warn(
      { event: 'log.lines-omitted', of, omitted, component: 'service', ...ofProcess },
      'Lines of one event came faster than they are written and were dropped.',
    ),
  );
  return { child: (bindings) => loggerOf(lines, { ...bindings, ...ofProcess }, mayWrite) };
}

type MayWrite = (event: LogEvent) => boolean;

function loggerOf(
  lines: pino.Logger,
  bindings: LogBindings & { role: string },
  mayWrite: MayWrite,
): Logger {
  const write =
    (level: keyof Pick<Logger, 'debug' | 'info' | 'warn' | 'error' | 'fatal'>): Write =>
    (context: LogContext, message) => {
      // `debug` was enabled to see every line; `fatal` is written once.
      const isLimited = level !== 'debug' && level !== 'fatal';
      if (isLimited && !mayWrite(context.event)) return;
      lines[level]({ ...context, ...bindings }, message);
    };
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    fatal: write('fatal'),
    isLevelEnabled: (level) => lines.isLevelEnabled(level),
  };
}

/** A token bucket of lines for each event. `tellOmitted` is called later with the number of omitted ones. */
function limitLines(
  monotonicClock: () => number,
  tellOmitted: (event: LogEvent, omitted: number) => void,
): MayWrite {
  const buckets = new Map<LogEvent, { lines: TokenBucket; omitted: number }>();
  return (event) => {
    if (ownLimit.has(event)) return true;
    const atMs = monotonicClock();
    let bucket = buckets.get(event);
    if (!bucket)
      buckets.set(event, (bucket = { lines: new TokenBucket(lineRate, atMs), omitted: 0 }));
    if (bucket.lines.level(lineRate, atMs) >= 1) {
      bucket.lines.take(1, lineRate, atMs);
      return true;
    }
    bucket.omitted += 1;
    if (bucket.omitted === 1) setTimeout(tell, omittedEveryMs, event, bucket).unref();
    return false;
  };

  function tell(event: LogEvent, bucket: { omitted: number }): void {
    const { omitted } = bucket;
    bucket.omitted = 0;
    tellOmitted(event, omitted);
  }
}

/** Truncates texts and lists in a line that is too long. A line with very many members keeps only its first ones. */
function shorten(line: string): string {
  if (line.length <= maxLine) return line;
  const cut = `${JSON.stringify(JSON.parse(line, cutValue))}\n`;
  if (cut.length <= maxLine) return cut;
  const { level, time, event, component, role, msg } = JSON.parse(cut) as Record<string, unknown>;
  return `${JSON.stringify({ level, time, event, component, role, msg, isCut: true })}\n`;
}

function cutValue(_name: string, value: unknown): unknown {
  if (typeof value === 'string' && value.length > maxText)
    return `${value.slice(0, maxText).toWellFormed()}…`;
  return Array.isArray(value) ? value.slice(0, maxEntries) : value;
}

/**
 * C1 controls, which terminals obey like ESC; characters that reorder, join or hide letters (bidirectional marks, zero
 * widths, U+FEFF); and separators that some readers take for the end of a line. JSON does not escape them.
 */
const marks = /[\p{Cf}\u007f-\u009f\u2028\u2029]/gu;
/**
 * All controls except newlines and tabs, which stack traces contain. JSON escapes them, but a terminal is not shown
 * JSON.
 */
const controls = /[^\P{Cc}\n\t]/gu;

const showMarks = (text: string): string => text.replaceAll(marks, escaped);

/** Escaped as in JSON: `\\u202e`. */
function escaped(mark: string): string {
  const units = Array.from({ length: mark.length }, (_, n) => mark.charCodeAt(n));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}

const shown = (_name: string, value: unknown): unknown =>
  typeof value === 'string' ? showMarks(value).replaceAll(controls, escaped) : value;

/** A terminal shows one process, so this omits what all its lines share and what their sentences already say. */
function prettyLines(destination?: DestinationStream): DestinationStream {
  const lines = pretty({
    destination: destination ?? 1,
    ignore: 'pid,hostname,role,component,connectorId,event,signal,delayMs,unfinished',
    // Warnings and errors include the code, so that people can look it up in docs/log.md.
    messageFormat: ({ msg, level, event }) =>
      Number(level) >= warnLevel ? `${String(msg)} [${String(event)}]` : String(msg),
    translateTime: 'SYS:HH:MM:ss',
    singleLine: true,
    sync: true,
  });
  return { write: (line) => void lines.write(withoutStack(line)) };
}

/** Below the level of an error, a terminal shows only the reason, without the stack. Control characters are escaped. */
function withoutStack(line: string): string {
  const parsed = JSON.parse(line, shown) as { level: number; err?: DescribedError };
  const { err, ...rest } = parsed;
  if (err === undefined || rest.level > warnLevel) return `${JSON.stringify(parsed)}\n`;
  return `${JSON.stringify({ ...rest, why: reasonsOf(err) })}\n`;
}

function reasonsOf({ message, cause }: DescribedError): string {
  return cause === undefined ? message : `${message} ${reasonsOf(cause)}`;
}

/** Members of an error that are logged besides its message; never the values of a statement or a command. */
const told = [
  'code',
  'errno',
  'syscall',
  'address',
  'port',
  'path',
  'severity',
  'schema',
  'table',
  'column',
  'constraint',
  'reason',
] as const;

/** The most nested causes. More would be a cycle or useless. */
const deepest = 5;

type DescribedError = Record<string, unknown> & {
  message: string;
  cause?: DescribedError;
};

/**
 * An error as it is logged: its type, message, stack and code, and its causes. Other members are omitted, because a
 * database's `detail` and a Redis command's arguments contain what people have stored.
 */
function describeError(error: unknown, depth = 0): DescribedError {
  if (!(error instanceof Error)) return { message: String(error) };
  const { name, message, stack, cause } = error;
  const parts: unknown = 'errors' in error ? error.errors : undefined;
  const members = Object.entries(error).filter(([key]) => told.some((one) => one === key));
  return {
    type: name,
    message,
    stack,
    ...Object.fromEntries(members),
    // For an AggregateError, such as one error per address of a host name.
    ...(Array.isArray(parts) && depth < deepest
      ? { errors: parts.map((part: unknown) => describeError(part, depth + 1)) }
      : {}),
    ...(cause === undefined || depth === deepest ? {} : { cause: describeError(cause, depth + 1) }),
  };
}

/** Removes something from a line. */
type Hidden = (line: string) => string;

/** A line without any of these contains nothing to hide, so most lines need only one check. */
const signs = ['@', 'eyJ', 'stream_', 'sens_', 'whsec_'];

/**
 * Each of these reads a line once, whatever it contains. Strangers choose parts of what is logged, so no pattern may
 * start again inside text that it has already read (its possible starts must not overlap).
 */
const hiders: Hidden[] = [
  // User name and password in a URL.
  (line) => line.replaceAll(/\/\/[^\s/@"]+@/g, '//[redacted]@'),
  hideTokens,
  // The ticket of a stream is in its URL. Keys and webhook secrets appear if a library repeats a header.
  (line) => line.replaceAll(/stream_[\w-]{20,}/g, '[ticket]'),
  (line) => line.replaceAll(/sens_[\w-]{20,}/g, '[key]'),
  (line) => line.replaceAll(/whsec_[\w+/=-]{20,}/g, '[secret]'),
  hideAddresses,
];

/**
 * Removes secrets and e-mail addresses anywhere in a JSON line: errors of libraries and other servers repeat the
 * addresses, tokens and URLs that they were given. Its time is linear in the line's length. Valid JSON stays valid
 * JSON.
 */
export function hidePrivate(line: string): string {
  if (!signs.some((sign) => line.includes(sign))) return line;
  return hiders.reduce((text, hide) => hide(text), line);
}

/** JSON Web Tokens, complete or only their first two parts (RFC 7519 section 3). */
function hideTokens(line: string): string {
  if (!line.includes('eyJ')) return line;
  return line.replaceAll(/[\w.-]+/g, (run) => {
    const begins = run.indexOf('eyJ');
    const hasParts = begins !== -1 && run.includes('.', begins);
    return hasParts ? `${run.slice(0, begins)}[token]` : run;
  });
}

// Without `/`, which RFC 5322 allows: paths end there, and `node_modules/@koa/router` is no address.
const local = charactersOf("abcdefghijklmnopqrstuvwxyz0123456789_.!#$%&'*+=?^`{|}~-");
const domain = charactersOf('abcdefghijklmnopqrstuvwxyz0123456789-.');

/**
 * Searches backwards and forwards from each `@`. Neither direction goes past another `@`, so every character is read at
 * most twice.
 */
function hideAddresses(line: string): string {
  const parts: string[] = [];
  let kept = 0;
  for (let at = line.indexOf('@'); at !== -1; at = line.indexOf('@', at + 1)) {
    let from = at;
    while (from > kept && local.has(line.charCodeAt(from - 1))) from -= 1;
    from = behindEscape(line, from, at);
    let to = at + 1;
    while (to < line.length && domain.has(line.charCodeAt(to))) to += 1;
    // A full stop or hyphen at the end belongs to the sentence.
    while (to > at + 1 && /[.-]/.test(line.charAt(to - 1))) to -= 1;
    const host = line.slice(at + 1, to);
    // The last label of a host is a name: `koa@3.0.0` is a version.
    if (from === at || !/^[A-Za-z]/.test(host.slice(host.lastIndexOf('.') + 1))) continue;
    parts.push(line.slice(kept, from), '[e-mail]');
    kept = to;
  }
  return parts.length === 0 ? line : parts.join('') + line.slice(kept);
}

/** The first hidden characters may be the end of an escape sequence, which must stay: `\n`, `\u001b`. */
function behindEscape(line: string, from: number, at: number): number {
  let backslashes = 0;
  while (backslashes < from && line.charAt(from - 1 - backslashes) === '\\') backslashes += 1;
  if (backslashes % 2 === 0) return from;
  return Math.min(at, from + (line.charAt(from) === 'u' ? 5 : 1));
}

function charactersOf(letters: string): ReadonlySet<number> {
  return new Set(Buffer.from(letters + letters.toUpperCase(), 'latin1'));
}
