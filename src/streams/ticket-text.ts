import { createHash, randomBytes } from 'node:crypto';

const prefix = 'stream_';
/** 256 bits as base64url. */
const pattern = /^stream_[\w-]{43}$/;

export function makeTicketText(): string {
  return prefix + randomBytes(32).toString('base64url');
}

/** SHA-256: a ticket is random, so that nobody finds it by guessing. Null for what can be none. */
export function hashTicketText(text: string): Buffer | null {
  return pattern.test(text) ? createHash('sha256').update(text).digest() : null;
}
