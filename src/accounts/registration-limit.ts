import { RateLimiterRes } from 'rate-limiter-flexible';
import { memoryLimiters, tooManyRequests, type LoginAttempts } from './limiters.ts';
import { network } from '../lib/network.ts';

/** Counts one more mail with a link that somebody at an address asks for; throws `too-many-requests`. */
export type CountLinkMail = (kind: 'reset' | 'confirm-email', address: string) => Promise<void>;

/** In an hour: from one network, and addresses that all accounts together ask to confirm. */
const linkMails = { ofNetwork: 60, confirmations: 500, windowSeconds: 3_600 };

/**
 * Counts mails that may go to strangers: anybody can ask for a new password of any account, and registers accounts
 * under any address. All links for new passwords together have no limit: whoever used it up would keep everybody
 * from getting back in.
 */
export function createLinkMailLimit(makeLimiter = memoryLimiters): CountLinkMail {
  const { ofNetwork, confirmations, windowSeconds } = linkMails;
  const byNetwork = makeLimiter('mail-address', ofNetwork, windowSeconds);
  const ofAll = makeLimiter('mail-confirmations', confirmations, windowSeconds);
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
 * Every attempt counts, also one for an e-mail address that is taken: it costs the hash of a password
 * too, and tells who has an account.
 */
export function createRegistrationLimit(
  { attempts, windowSeconds }: LoginAttempts,
  makeLimiter = memoryLimiters,
): CountRegistration {
  const byAddress = makeLimiter('register-address', attempts, windowSeconds);
  return async (address) => {
    try {
      await byAddress.consume(network(address));
    } catch (reached) {
      if (!(reached instanceof RateLimiterRes)) throw reached;
      throw tooManyRequests('registrations', reached);
    }
  };
}
