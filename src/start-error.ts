import { DomainError } from './errors.ts';

/** A reason why the program cannot start that its user can fix. Each line describes a problem. */
export class StartError extends Error {
  readonly lines: string[];
  /** The same start may succeed later without a fix, for example when the database is back. */
  readonly mayPass: boolean;

  constructor(lines: string | string[], options: { cause?: unknown; mayPass?: boolean } = {}) {
    const all = typeof lines === 'string' ? [lines] : lines;
    super(all.join('\n'), { cause: options.cause });
    this.name = 'StartError';
    this.lines = all;
    this.mayPass = options.mayPass ?? false;
  }
}

/** Whether a start that failed with this error may succeed later without a fix. */
export function mayPass(error: unknown): boolean {
  if (error instanceof StartError) return error.mayPass;
  return error instanceof DomainError && error.code === 'unavailable';
}

/** The lines to print for an error at start; null if it is a bug in the program, whose stack should be printed. */
export function describeStartError(error: unknown): string[] | null {
  if (error instanceof StartError) return error.lines;
  if (!(error instanceof Error) || !('code' in error)) return null;
  if (error instanceof DomainError && error.code === 'unavailable')
    return [`The service could not start: ${error.message} Try again when it is there.`];
  const { code } = error;
  if (code === 'EADDRINUSE') return [`Port ${at(error)} is in use: ${otherPort}`];
  if (code === 'EACCES' && 'port' in error)
    return [`This user may not listen on port ${at(error)}: ${otherPort}`];
  if (code === 'EADDRNOTAVAIL')
    return [
      `This machine has no address ${at(error)}: check HTTP_HOST, MQTT_HOST, METRICS_HOST, HEALTH_HOST.`,
    ];
  // A file named in the settings, such as a key, or a full disk.
  if (unusable.includes(String(code)) && 'path' in error) {
    const path = 'dest' in error ? error.dest : error.path;
    return [`${String(path)}: cannot be read or written (${error.message}).`];
  }
  return null;
}

const unusable = ['ENOENT', 'EACCES', 'EISDIR', 'ENOTDIR', 'ENOSPC', 'EDQUOT', 'EROFS'];

const otherPort =
  'stop what uses it, or choose another one with HTTP_PORT, MQTT_PORT, MQTTS_PORT, ' +
  'METRICS_PORT or HEALTH_PORT (0 takes any free one).';

function at(error: object): string {
  const port = 'port' in error ? String(error.port) : '?';
  return 'address' in error ? `${port} of ${String(error.address)}` : port;
}
