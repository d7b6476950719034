import { createHmac, timingSafeEqual } from 'node:crypto';

/** What a link in a mail does; one made for the one does not do the other. */
export type LinkPurpose = 'confirm' | 'unsubscribe';

const dayMs = 86_400_000;
/** A mail may be answered long after it came: who wants no more of them is to be heard. */
const lifetimesMs: Record<LinkPurpose, number> = { confirm: 7 * dayMs, unsubscribe: 400 * dayMs };
const uuidBytes = 16;
const expiryBytes = 6;
const macBytes = 16;
const tokenBytes = uuidBytes + expiryBytes + macBytes;

/**
 * A token for a link, URL-safe: the contact's uuid and when it expires, signed by the newest key for this
 * purpose alone. Nothing of it is stored, so nobody who reads the database or a backup can use it.
 */
export function makeLinkToken(
  keys: readonly Buffer[],
  purpose: LinkPurpose,
  { contactUuid, nowMs }: { contactUuid: string; nowMs: number },
): string {
  const [newest] = keys;
  if (!newest) throw new Error('There is no key for links in mails.');
  const claim = Buffer.alloc(uuidBytes + expiryBytes);
  claim.write(contactUuid.replaceAll('-', ''), 'hex');
  claim.writeUIntBE(nowMs + lifetimesMs[purpose], uuidBytes, expiryBytes);
  return Buffer.concat([claim, sign(newest, purpose, claim)]).toString('base64url');
}

/** The contact's uuid and when the token was made (ms); null where it is not of this purpose, or expired. */
export function readLinkToken(
  keys: readonly Buffer[],
  purpose: LinkPurpose,
  { token, nowMs }: { token: string; nowMs: number },
): { contactUuid: string; madeTs: number } | null {
  const bytes = Buffer.from(token, 'base64url');
  if (bytes.length !== tokenBytes || bytes.toString('base64url') !== token) return null;
  const claim = bytes.subarray(0, uuidBytes + expiryBytes);
  const mac = bytes.subarray(claim.length);
  if (!keys.some((key) => timingSafeEqual(sign(key, purpose, claim), mac))) return null;
  const expiresTs = claim.readUIntBE(uuidBytes, expiryBytes);
  if (expiresTs < nowMs) return null;
  const hex = claim.toString('hex', 0, uuidBytes);
  const contactUuid = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  return { contactUuid, madeTs: expiresTs - lifetimesMs[purpose] };
}

function sign(key: Buffer, purpose: LinkPurpose, claim: Buffer): Buffer {
  return createHmac('sha256', key)
    .update(`${purpose}\n`)
    .update(claim)
    .digest()
    .subarray(0, macBytes);
}
