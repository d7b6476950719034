import { setTimeout as delay } from 'node:timers/promises';
import { DomainError } from '../errors.ts';

/** Runs work; what it is refused for is thrown after a pause. */
export type RefuseSlowly = <T>(
  work: () => Promise<T>,
  request: { readonly signal: AbortSignal },
) => Promise<T>;

/** A pause costs little more than the connection it is for. */
const maxPausing = 2_000;

/**
 * A refusal is cheap, and who asks again at once gets thousands a second, which would cost the others
 * more than the hashes it saves. `pauseMs` holds 300 connections to a few hundred a second.
 */
export function createRefuseSlowly(pauseMs = 500): RefuseSlowly {
  let pausing = 0;
  return async (work, request) => {
    try {
      return await work();
    } catch (error) {
      if (!isRefusal(error) || pausing >= maxPausing) throw error;
      pausing += 1;
      // Who has gone need not be waited for, nor does the service that stops.
      await delay(pauseMs, undefined, { signal: request.signal }).catch(() => undefined);
      pausing -= 1;
      throw error;
    }
  };
}

function isRefusal(error: unknown): boolean {
  if (!(error instanceof DomainError)) return false;
  return error.code === 'too-many-requests' || error.code === 'unavailable';
}
