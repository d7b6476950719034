import { createHash, timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { RateLimiterAbstract } from 'rate-limiter-flexible';
import { DomainError } from '../errors.ts';
import type { RequestInfo } from '../http/request.ts';

export type SecretCheckDeps = {
  /** What the broker shows. */
  secret: string;
  /** A counter of at most `points` in `seconds`, for all processes where they share one. */
  makeLimiter: (name: string, points: number, seconds: number) => RateLimiterAbstract;
  /** What counts as one address. */
  networkOf: (address: string) => string;
  /** Told of each request without the secret. */
  onRefused: (reason: 'wrong-secret' | 'throttled') => void;
};

/** Throws `unauthenticated`, or `too-many-requests`. */
export type CheckSecret = (request: RequestInfo) => Promise<void>;

/** Wrong secrets of one address in `windowSeconds`, after which none is looked at. */
const maxWrong = 30;
const windowSeconds = 60;
const maxKnown = 10_000;

/**
 * Lets brokers in and slows down who guesses. An address that the right secret came from is heard
 * whatever else comes from there: nobody behind the same proxy can shut a broker out.
 */
export function createSecretCheck(deps: SecretCheckDeps): CheckSecret {
  const { secret, networkOf, onRefused } = deps;
  const wrong = deps.makeLimiter('hook-address', maxWrong, windowSeconds);
  const known = new LRUCache<string, true>({ max: maxKnown });

  return async (request) => {
    const from = networkOf(request.address);
    if (!known.has(from)) await refuseGuessing(from);
    if (shows(request, secret)) {
      known.set(from, true);
      return;
    }
    onRefused('wrong-secret');
    await wrong.penalty(from);
    throw new DomainError('unauthenticated', 'The secret of the broker is needed.');
  };

  async function refuseGuessing(from: string): Promise<void> {
    const counted = await wrong.get(from);
    if (counted === null || counted.consumedPoints < maxWrong) return;
    onRefused('throttled');
    throw new DomainError('too-many-requests', 'Too many wrong secrets: wait a while.', {
      retryAfterSeconds: Math.ceil(counted.msBeforeNext / 1_000),
    });
  }
}

/** As a bearer token, or as the password of RFC 7617 for brokers that can only send a URL. */
function shows(request: RequestInfo, secret: string): boolean {
  const [scheme = '', shown = ''] = request.header('authorization').split(/ +/, 2);
  if (/^bearer$/i.test(scheme)) return isSameSecret(shown, secret);
  if (!/^basic$/i.test(scheme)) return false;
  const pair = Buffer.from(shown, 'base64').toString();
  return isSameSecret(pair.slice(pair.indexOf(':') + 1), secret);
}

/** In constant time, whatever the lengths. */
export function isSameSecret(shown: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(shown), digest(secret));
}
