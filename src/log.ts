import { pino, type DestinationStream, type Logger } from 'pino';
import pretty from 'pino-pretty';

export type { Logger } from 'pino';

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

export type LogOptions = {
  level: string;
  /** For people rather than for machines: one coloured line each. */
  isTerminal: boolean;
  destination?: DestinationStream;
};

/** JSON lines on standard output (pretty on a terminal), with passwords and tokens blacked out. */
export function createLog({ level, isTerminal, destination }: LogOptions): Logger {
  const options = {
    level,
    base: undefined,
    redact: {
      paths: secretNames.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]),
      censor: '[redacted]',
    },
  };
  if (destination) return pino(options, destination);
  if (!isTerminal) return pino(options);
  return pino(
    options,
    pretty({ ignore: 'pid,hostname', translateTime: 'SYS:HH:MM:ss', singleLine: true, sync: true }),
  );
}
