import { isGenuine, makeLinkToken, readLinkClaim } from '../lib/crypto.ts';
import type { AccountRow } from './find-account.ts';

/** How long links to set a password or to confirm an address are good. */
export const linkLifetimeMs = 30 * 60_000;

type ResetOwner = Pick<AccountRow, 'accountUuid' | 'passwordHash' | 'email'>;

/**
 * A link's token to set a new password. It is bound to the password and the address that the account has
 * now: it works once, and not any more after either was changed.
 */
export function makeResetToken(
  keys: readonly Buffer[],
  account: ResetOwner,
  nowMs: number,
): string {
  const claim = { uuid: account.accountUuid, expiresTs: nowMs + linkLifetimeMs };
  return makeLinkToken(keys, 'reset', claim, boundOf(account));
}

/** Whether the token was made for the account as it is now. */
export function isResetToken(keys: readonly Buffer[], account: ResetOwner, token: string): boolean {
  return isGenuine(keys, 'reset', token, boundOf(account));
}

const boundOf = ({ passwordHash, email }: ResetOwner) => JSON.stringify([passwordHash, email]);

/** A link's token to confirm a new address; once, for the change is gone when it is made. */
export function makeEmailToken(
  keys: readonly Buffer[],
  change: { uuid: string; expiresTs: number },
): string {
  return makeLinkToken(keys, 'email', change);
}

/** Which change of address the token is for; null where it is not for one, or expired. */
export function readEmailToken(
  keys: readonly Buffer[],
  token: string,
  nowMs: number,
): string | null {
  const claim = readLinkClaim(token, nowMs, linkLifetimeMs);
  return claim && isGenuine(keys, 'email', token) ? claim.uuid : null;
}
