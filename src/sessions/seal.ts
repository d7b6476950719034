import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

const algorithm = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;

/**
 * Text that only the holder of a token can read again: where it is kept, nobody has the token. A token
 * has 256 random bits, so a key can be derived from it without stretching.
 */
export function seal(text: string, token: string): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, keyOf(token), nonce);
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url');
}

/** The text that was sealed with this token. Throws for another token, or what was tampered with. */
export function unseal(sealed: string, token: string): string {
  const bytes = Buffer.from(sealed, 'base64url');
  const tag = bytes.subarray(nonceBytes, nonceBytes + tagBytes);
  const decipher = createDecipheriv(algorithm, keyOf(token), bytes.subarray(0, nonceBytes));
  decipher.setAuthTag(tag);
  const text = decipher.update(bytes.subarray(nonceBytes + tagBytes));
  return Buffer.concat([text, decipher.final()]).toString('utf8');
}

function keyOf(token: string): Buffer {
  return Buffer.from(hkdfSync('sha256', token, 'sensorium', 'v1 refresh successor', 32));
}
