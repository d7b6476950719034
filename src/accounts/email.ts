import { createHash } from 'node:crypto';

/**
 * The one normal form of an e-mail address: what accounts are found by, and counted by when somebody
 * guesses at their passwords. Made here alone, and stored: a database's `lower` goes by its locale,
 * and where the two differ (U+0130 for `i`) guesses would be counted for nobody.
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
