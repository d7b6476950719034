import type { Redis } from 'ioredis';
import {
  type RateLimiterAbstract,
  RateLimiterMemory,
  RateLimiterRedis,
  RateLimiterRes,
} from 'rate-limiter-flexible';
import { DomainError, type RateLimit } from '../errors.ts';
import { network } from '../lib/address.ts';
import type { Asker } from '../lib/fair-queue.ts';
import { accountKey, normalizeEmail } from './queries.ts';

type ThrottleLimits = {
  /** Failures for one account from one address. */
  perAccount: LoginAttempts;
  /** Failures from one address, whatever the account. */
  perAddress: LoginAttempts;
};

export type LoginThrottle = {
  /** Throws `too-many-requests`. */
  check(email: string, address: string): Promise<void>;
  countFailure(email: string, address: string): Promise<void>;
  countSuccess(email: string, address: string): Promise<void>;
};

// Less than the longest possible timer, 2^31 ms.
const knownSeconds = 20 * 24 * 3_600;

/**
 * Slows down guessing without letting anybody lock others out: an account's limit counts each address separately. A
 * guess spread over many addresses meets a limit for the whole account, ten times as high and a minute long; addresses
 * that have logged in before are exempt from it.
 */
export function createThrottle(
  limits: ThrottleLimits,
  makeLimiter = memoryLimiters,
): LoginThrottle {
  const { perAccount, perAddress } = limits;
  const byPair = makeLimiter('login-pair', perAccount);
  const byAddress = makeLimiter('login-address', perAddress);
  const ofAccount = { attempts: 10 * perAccount.attempts, windowSeconds: 60 };
  const byAccount = makeLimiter('login-account', ofAccount);
  const known = makeLimiter('login-known', { attempts: 1, windowSeconds: knownSeconds });

  return {
    async check(email, address) {
      const pair = pairKey(email, address);
      const [ofPair, ofAddress, ofAccount, isKnown] = await Promise.all([
        byPair.get(pair),
        byAddress.get(network(address)),
        byAccount.get(accountKey(email)),
        known.get(pair),
      ]);
      refuse(byPair, ofPair);
      refuse(byAddress, ofAddress);
      if (isKnown === null) refuse(byAccount, ofAccount);
    },
    async countFailure(email, address) {
      await Promise.all([
        byPair.penalty(pairKey(email, address)),
        byAddress.penalty(network(address)),
        byAccount.penalty(accountKey(email)),
      ]);
    },
    async countSuccess(email, address) {
      const pair = pairKey(email, address);
      await Promise.all([known.set(pair, 1, knownSeconds), byPair.delete(pair)]);
    },
  };
}

function refuse(limiter: RateLimiterAbstract, result: RateLimiterRes | null): void {
  if (result === null || result.consumedPoints < limiter.points) return;
  throw tooManyRequests('failed logins', result);
}

/** An account from one address. */
function pairKey(email: string, address: string): string {
  return `${accountKey(email)}:${network(address)}`;
}

/** In whose share of the queue a password is hashed. */
export function askerOf(email: string, address: string): Asker {
  return { address: network(address), who: accountKey(email) };
}

/** The same for a known account. `address`: null if no client asked. */
export function askerOfAccount(accountId: number, address: string | null): Asker {
  return { address: network(address ?? ''), who: String(accountId) };
}

type LoginAttempts = { attempts: number; windowSeconds: number };

/** Makes a counter of at most so many attempts in a window: in memory, or in Redis for all processes. */
export type MakeLimiter = (name: string, limit: LoginAttempts) => RateLimiterAbstract;

/** Each process counts for itself. */
export const memoryLimiters: MakeLimiter = (keyPrefix, { attempts, windowSeconds }) =>
  new RateLimiterMemory({ keyPrefix, points: attempts, duration: windowSeconds });

/** The error when a counter is full: `too-many-requests`, until its window ends. */
function tooManyRequests(
  what: string,
  { msBeforeNext }: RateLimiterRes,
  rate?: Omit<RateLimit, 'resetSeconds'>,
): DomainError {
  const retryAfterSeconds = Math.ceil(msBeforeNext / 1_000);
  return new DomainError('too-many-requests', `Too many ${what}: wait before trying again.`, {
    retryAfterSeconds,
    ...(rate ? { rate: { ...rate, resetSeconds: retryAfterSeconds } } : {}),
  });
}

/** Logins a minute, successful or not. */
type LoginQuotas = {
  /** For one account, by its normalized e-mail address, from one address. */
  loginsOf: (email: string) => number;
  /** From one address, whatever the account. */
  loginsPerAddress: number;
};

/** Counts one more login; throws `too-many-requests`. */
export type CountLogin = (email: string, address: string) => Promise<void>;

const windowSeconds = 60;

/**
 * A login costs a password hash, so each one counts, before it is queued. Like the throttle this locks nobody out: an
 * account's limit counts each address separately, and a login over its account's limit does not count for its address,
 * which others may share.
 */
export function createLoginRates(
  { loginsOf, loginsPerAddress }: LoginQuotas,
  makeLimiter = memoryLimiters,
): CountLogin {
  /** Only accounts that the operator gave a limit of their own differ, so there are few. */
  const byPairs = new Map<number, RateLimiterAbstract>();
  const byPairOf = (limit: number): RateLimiterAbstract => {
    const known = byPairs.get(limit);
    const limiter = known ?? makeLimiter('logins-pair', { attempts: limit, windowSeconds });
    if (!known) byPairs.set(limit, limiter);
    return limiter;
  };
  const byAddress = makeLimiter('logins-address', { attempts: loginsPerAddress, windowSeconds });
  return async (email, address) => {
    const pair = pairKey(email, address);
    const byPair = byPairOf(loginsOf(normalizeEmail(email)));
    await consume(byPair, pair, 'loginsPerAccount');
    try {
      await consume(byAddress, network(address), 'loginsPerAddress');
    } catch (error) {
      // A login refused for its address must not count for its account.
      await byPair.reward(pair);
      throw error;
    }
  };
}

async function consume(limiter: RateLimiterAbstract, key: string, quota: string): Promise<void> {
  try {
    await limiter.consume(key);
  } catch (reached) {
    if (!(reached instanceof RateLimiterRes)) throw reached;
    throw tooManyRequests('logins', reached, { quota, limit: limiter.points, windowSeconds });
  }
}

/** Counts one more mail with a link that somebody at an address requests; throws `too-many-requests`. */
export type CountLinkMail = (kind: 'reset' | 'confirm-email', address: string) => Promise<void>;

/** In an hour: mails requested from one network, and confirmations requested by all accounts together. */
const linkMails = { ofNetwork: 60, confirmations: 500, windowSeconds: 3_600 };

/**
 * Limits mails that may go to strangers: anybody can request a new password for any account, and can register accounts
 * under any address. There is no limit for all password links together: whoever used it up could keep everybody else
 * from recovering their account.
 */
export function createLinkMailLimit(makeLimiter = memoryLimiters): CountLinkMail {
  const { ofNetwork, confirmations, windowSeconds } = linkMails;
  const byNetwork = makeLimiter('mail-address', { attempts: ofNetwork, windowSeconds });
  const ofAll = makeLimiter('mail-confirmations', { attempts: confirmations, windowSeconds });
  return async (kind, address) => {
    try {
      await byNetwork.consume(network(address));
      if (kind === 'confirm-email') await ofAll.consume('all');
    } catch (reached) {
      if (!(reached instanceof RateLimiterRes)) throw reached;
      throw tooManyRequests('mails', reached);
    }
  };
}

/** Counts one more registration from an address; throws `too-many-requests`. */
export type CountRegistration = (address: string) => Promise<void>;

/**
 * Every attempt counts, even for an e-mail address that is taken: that costs a password hash too, and reveals who has
 * an account.
 */
export function createRegistrationLimit(
  limit: LoginAttempts,
  makeLimiter = memoryLimiters,
): CountRegistration {
  const byAddress = makeLimiter('register-address', limit);
  return async (address) => {
    try {
      await byAddress.consume(network(address));
    } catch (reached) {
      if (!(reached instanceof RateLimiterRes)) throw reached;
      throw tooManyRequests('registrations', reached);
    }
  };
}

/** Counters that all processes share; while Redis is unreachable each process counts for itself. */
export function redisLimiters(redis: Redis, prefix = 'sensorium:'): MakeLimiter {
  return (name, limit) =>
    new RateLimiterRedis({
      storeClient: redis,
      keyPrefix: `${prefix}${name}`,
      points: limit.attempts,
      duration: limit.windowSeconds,
      rejectIfRedisNotReady: true,
      insuranceLimiter: memoryLimiters(name, limit),
    });
}
