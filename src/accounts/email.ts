import { createHash } from 'node:crypto';

/**
 * The normalized e-mail address: accounts are looked up by it, and failed logins are counted by it.
 * Computed here only, and stored: the database's `lower` depends on its locale, and where the two
 * differ (U+0130 for `i`) failed logins would count for no account.
 */
export function normalizeEmail(email: string): string {
  return email.toLowerCase();
}

/**
 * What counters and queues know an account by. Strangers choose what they send: keys are of one
 * length, and no store shows who logs in.
 */
export function accountKey(email: string): string {
  return createHash('sha256').update(normalizeEmail(email)).digest('base64url').slice(0, 22);
}
