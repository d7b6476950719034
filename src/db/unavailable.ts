import { DomainError } from '../errors.ts';

/**
 * Whether an error says that the server, or the way to it, is away for now: connection errors
 * (class 08, socket errors), shutdown and start-up (57P0x), no room (53xxx), a timeout (57014).
 */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof DomainError) return error.code === 'unavailable';
  // Whatever the reason: a Unix socket is not there (ENOENT) while its server starts anew.
  if ('syscall' in error && error.syscall === 'connect') return true;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  if (/^(08|53|57P0|57014|58)/.test(code)) return true;
  if (/^E(CONN|PIPE|TIMEDOUT|HOST|NET|NOTFOUND|AI_AGAIN)/.test(code)) return true;
  return (
    /timeout|Connection terminated|not queryable|connection error/i.test(error.message) &&
    code === ''
  );
}
