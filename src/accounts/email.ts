/**
 * The one normal form of an e-mail address: what accounts are found by, and counted by when somebody
 * guesses at their passwords. Made here alone, and stored: a database's `lower` goes by its locale,
 * and where the two differ (U+0130 for `i`) guesses would be counted for nobody.
 */
export function normalizeEmail(email: string): string {
  return email.toLowerCase();
}
