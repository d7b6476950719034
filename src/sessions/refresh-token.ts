import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { UseKeys } from '../config/keys.ts';
import { newestKey } from './tokens.ts';

/**
 * Refresh tokens: `session.random.signature`. The signature tells a token that was handed out once
 * (using it again is theft) from one made up (which must not end anybody's session).
 */
export function makeRefreshToken(keys: UseKeys, sessionId: string): string {
  const text = `${sessionId}.${randomBytes(32).toString('base64url')}`;
  return `${text}.${signature(newestKey(keys), text)}`;
}

/** Whether this installation made the token, for this session. */
export function isRefreshToken(keys: UseKeys, sessionId: string, token: string): boolean {
  const end = token.lastIndexOf('.');
  const text = token.slice(0, Math.max(end, 0));
  const given = Buffer.from(token.slice(end + 1));
  if (!text.startsWith(`${sessionId}.`)) return false;
  return keys.some((key) => {
    const expected = Buffer.from(signature(key, text));
    return expected.length === given.length && timingSafeEqual(expected, given);
  });
}

/** What is stored of a token. It has 256 random bits, so a plain hash does. */
export function hashRefreshToken(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}

function signature(key: Buffer, text: string): string {
  return createHmac('sha256', key).update(text).digest('base64url');
}
