import { createHash, timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { RateLimiterAbstract } from 'rate-limiter-flexible';
import { DomainError } from '../errors.ts';
import type { RequestInfo } from '../http/request.ts';

/** Why somebody was not let in, for whoever counts. */
export type HookRefusal =
  'wrong-secret' | 'throttled' | 'bridge-wrong-password' | 'bridge-throttled';

type GuessDeps = {
  secret: string;
  /** A counter of at most `points` in `seconds`, for all processes where they share one. */
  makeLimiter: (name: string, points: number, seconds: number) => RateLimiterAbstract;
  /** What counts as one address. */
  networkOf: (address: string) => string;
};

/** Whether a secret is right; not looked at where too many wrong ones came from there: until when, in seconds. */
type Guess = 'right' | 'wrong' | { retryAfterSeconds: number };

/** Wrong secrets of one address in `windowSeconds`, after which none is looked at. */
const maxWrong = 30;
const windowSeconds = 60;
const maxKnown = 10_000;

/**
 * Slows down who guesses. An address that the right secret came from is heard whatever else comes from there:
 * nobody behind the same proxy can shut out who knows it.
 */
function createGuesses(name: string, { secret, makeLimiter, networkOf }: GuessDeps) {
  const wrong = makeLimiter(name, maxWrong, windowSeconds);
  const known = new LRUCache<string, true>({ max: maxKnown });
  return async (address: string, isRight: (secret: string) => boolean): Promise<Guess> => {
    const from = networkOf(address);
    if (!known.has(from)) {
      const counted = await wrong.get(from);
      if (counted !== null && counted.consumedPoints >= maxWrong)
        return { retryAfterSeconds: Math.ceil(counted.msBeforeNext / 1_000) };
    }
    if (isRight(secret)) {
      known.set(from, true);
      return 'right';
    }
    await wrong.penalty(from);
    return 'wrong';
  };
}

export type SecretCheckDeps = GuessDeps & {
  /** Told of each request without the secret. */
  onRefused: (reason: HookRefusal) => void;
};

/** Lets brokers in. Throws `unauthenticated`, or `too-many-requests`. */
export type CheckSecret = (request: RequestInfo) => Promise<void>;

export function createSecretCheck(deps: SecretCheckDeps): CheckSecret {
  const guess = createGuesses('hook-address', deps);
  return async (request) => {
    const guessed = await guess(request.address, (secret) => shows(request, secret));
    if (guessed === 'right') return;
    deps.onRefused(guessed === 'wrong' ? 'wrong-secret' : 'throttled');
    if (guessed === 'wrong')
      throw new DomainError('unauthenticated', 'The secret of the broker is needed.');
    throw new DomainError('too-many-requests', 'Too many wrong secrets: wait a while.', guessed);
  };
}

export type BridgeCheckDeps = GuessDeps & {
  /** Told of each bridge that is not let in; `address`: where it comes from, if the broker said so. */
  onRefused: (reason: HookRefusal, address: string | undefined) => void;
};

/** Whether somebody who calls himself a bridge is one. */
export type CheckBridge = (password: string, address: string | undefined) => Promise<boolean>;

/**
 * Anybody who reaches the broker can guess at what bridges show. Where the broker does not say from where, nobody
 * is slowed down: all bridges would be with him.
 */
export function createBridgeCheck(deps: BridgeCheckDeps): CheckBridge {
  const guess = createGuesses('hook-bridge', deps);
  return async (password, address) => {
    const isRight = (secret: string) => isSameSecret(password, secret);
    const guessed =
      address === undefined
        ? isRight(deps.secret)
          ? 'right'
          : 'wrong'
        : await guess(address, isRight);
    if (guessed === 'right') return true;
    deps.onRefused(guessed === 'wrong' ? 'bridge-wrong-password' : 'bridge-throttled', address);
    return false;
  };
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
function isSameSecret(shown: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(shown), digest(secret));
}
