import { createHash, randomBytes } from 'node:crypto';

const prefix = 'sens_';
/** 256 bits as base64url. */
const pattern = /^sens_[\w-]{43}$/;

/** A key is recognised by how it begins: no token of a session does. */
export const isKeyText = (token: string): boolean => token.startsWith(prefix);

export function makeKeyText(): string {
  return prefix + randomBytes(32).toString('base64url');
}

/** SHA-256: a key is random, so that nobody finds it by guessing. Null for what can be no key. */
export function hashKeyText(text: string): Buffer | null {
  return pattern.test(text) ? createHash('sha256').update(text).digest() : null;
}
