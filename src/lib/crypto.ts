import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';
import type { WallMs } from './clock-readings.ts';

const uuidBytes = 16;
const expiryBytes = 6;
const claimBytes = uuidBytes + expiryBytes;
const macBytes = 16;
/** The clocks of processes differ by less. */
const aheadMs = 60_000;

/** The claim of a link: whose it is, and until when (ms). */
type LinkClaim = { uuid: string; expiresTs: number };

/**
 * A URL-safe token for a link, signed with the newest key for one use. Nothing of it is stored, so nobody who reads the
 * database or a backup can use it. `bound`: a text that must be the same when the token is checked. A link bound to
 * what it changes works once.
 */
export function makeLinkToken(
  keys: readonly Buffer[],
  use: string,
  { uuid, expiresTs }: LinkClaim,
  bound = '',
): string {
  const [newest] = keys;
  if (!newest) throw new Error('There is no key for links in e-mails.');
  const claim = Buffer.alloc(claimBytes);
  claim.write(uuid.replaceAll('-', ''), 'hex');
  claim.writeUIntBE(expiresTs, uuidBytes, expiryBytes);
  return Buffer.concat([claim, sign(newest, use, claim, bound)]).toString('base64url');
}

/**
 * The unverified claim of a token; `isGenuine` verifies it. Null if it is no token, has expired, or is valid for longer
 * than `lifetimeMs`, which means that a clock was ahead when it was made.
 */
export function readLinkClaim(
  token: string,
  nowTs: WallMs,
  lifetimeMs = Infinity,
): LinkClaim | null {
  const bytes = bytesOf(token);
  if (!bytes) return null;
  const expiresTs = bytes.readUIntBE(uuidBytes, expiryBytes);
  if (expiresTs < nowTs || expiresTs - nowTs > lifetimeMs + aheadMs) return null;
  const hex = bytes.toString('hex', 0, uuidBytes);
  const uuid = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  return { uuid, expiresTs };
}

/** Whether this service made the token for this use, and `bound` is still the same. */
export function isGenuine(
  keys: readonly Buffer[],
  use: string,
  token: string,
  bound = '',
): boolean {
  const bytes = bytesOf(token);
  if (!bytes) return false;
  const claim = bytes.subarray(0, claimBytes);
  const mac = bytes.subarray(claimBytes);
  return keys.some((key) => timingSafeEqual(sign(key, use, claim, bound), mac));
}

function bytesOf(token: string): Buffer | null {
  const bytes = Buffer.from(token, 'base64url');
  const isOne = bytes.length === claimBytes + macBytes && bytes.toString('base64url') === token;
  return isOne ? bytes : null;
}

function sign(key: Buffer, use: string, claim: Buffer, bound: string): Buffer {
  return createHmac('sha256', key)
    .update(`${use}\n`)
    .update(claim)
    .update(bound)
    .digest()
    .subarray(0, macBytes);
}

const algorithm = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;

/** Encrypts and authenticates text with a key of 32 bytes. */
export function sealText(text: string, key: Buffer): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, key, nonce);
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url');
}

/** Decrypts text from `sealText`. Throws for another key, and for text that was changed. */
export function unsealText(sealed: string, key: Buffer): string {
  const bytes = Buffer.from(sealed, 'base64url');
  const tag = bytes.subarray(nonceBytes, nonceBytes + tagBytes);
  const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, nonceBytes));
  decipher.setAuthTag(tag);
  const text = decipher.update(bytes.subarray(nonceBytes + tagBytes));
  return Buffer.concat([text, decipher.final()]).toString('utf8');
}
