import { isGenuine, makeLinkToken as makeToken, readLinkClaim } from '../lib/crypto.ts';

/** What a link in a mail does; one made for the one does not do the other. */
export type LinkPurpose = 'confirm' | 'unsubscribe';

const dayMs = 86_400_000;
/** A mail may be answered long after it came: who wants no more of them is to be heard. */
const lifetimesMs: Record<LinkPurpose, number> = { confirm: 7 * dayMs, unsubscribe: 400 * dayMs };

/** A token for a link: the contact's uuid and when it expires, signed for this purpose alone. */
export function makeContactToken(
  keys: readonly Buffer[],
  purpose: LinkPurpose,
  { contactUuid: uuid, nowMs }: { contactUuid: string; nowMs: number },
): string {
  return makeToken(keys, purpose, { uuid, expiresTs: nowMs + lifetimesMs[purpose] });
}

/** The contact's uuid and when the token was made (ms); null where it is not of this purpose, or expired. */
export function readLinkToken(
  keys: readonly Buffer[],
  purpose: LinkPurpose,
  { token, nowMs }: { token: string; nowMs: number },
): { contactUuid: string; madeTs: number } | null {
  // Whoever wants no more mail is let go, also by a link that a clock ahead has made.
  const longestMs = purpose === 'unsubscribe' ? Infinity : lifetimesMs[purpose];
  const claim = readLinkClaim(token, nowMs, longestMs);
  if (!claim || !isGenuine(keys, purpose, token)) return null;
  return { contactUuid: claim.uuid, madeTs: claim.expiresTs - lifetimesMs[purpose] };
}
