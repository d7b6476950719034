import { DomainError } from '../errors.ts';
import { pause } from '../lib/wait.ts';

/** Runs work; what it is refused for is thrown after a pause. */
export type RefuseSlowly = <T>(
  work: () => Promise<T>,
  request: { readonly signal: AbortSignal },
) => Promise<T>;

/** A pause costs little more than the connection it is for. */
const maxPausing = 2_000;

/**
 * For what clients ask again at once: a refusal is cheap, and thousands of them a second would cost the
 * others more than what was refused. `pauseMs` holds 300 connections to 300 a second.
 */
export function createRefuseSlowly(pauseMs = 1_000): RefuseSlowly {
  let pausing = 0;
  return async (work, request) => {
    try {
      return await work();
    } catch (error) {
      if (!isRefusal(error) || pausing >= maxPausing) throw error;
      pausing += 1;
      // Who has gone need not be waited for, nor does the service that stops.
      await pause(pauseMs, request.signal);
      pausing -= 1;
      throw error;
    }
  };
}

function isRefusal(error: unknown): boolean {
  if (!(error instanceof DomainError)) return false;
  return ['too-many-requests', 'unavailable', 'quota-exceeded'].includes(error.code);
}
