import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

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

/** Decrypts what `sealText` gave. Throws for another key, and for text that was changed. */
export function unsealText(sealed: string, key: Buffer): string {
  const bytes = Buffer.from(sealed, 'base64url');
  const tag = bytes.subarray(nonceBytes, nonceBytes + tagBytes);
  const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, nonceBytes));
  decipher.setAuthTag(tag);
  const text = decipher.update(bytes.subarray(nonceBytes + tagBytes));
  return Buffer.concat([text, decipher.final()]).toString('utf8');
}
