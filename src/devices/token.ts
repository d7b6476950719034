import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';

// 192 bits: far beyond guessing, and 32 characters, which leaves room in the 256 bytes that small
// MQTT clients keep for the whole CONNECT packet.
const tokenBytes = 24;
const tokenLength = 32;

/**
 * A device's token, 32 URL-safe characters: derived from its uuid (lower case) and its token's
 * version, so that no credential is ever stored. The newest key makes it.
 */
export function deriveToken(keys: readonly Buffer[], uuid: string, version: number): string {
  const [newest] = keys;
  if (!newest) throw new Error('there is no key for device tokens');
  return derive(newest, uuid, version);
}

/** Whether `token` is that of the device at this version under any of the keys, in constant time. */
export function isToken(
  keys: readonly Buffer[],
  uuid: string,
  version: number,
  token: string,
): boolean {
  return findTokenKey(keys, uuid, version, token) >= 0;
}

/** The place of the key under which `token` is that of the device at this version; -1: none. In constant time. */
export function findTokenKey(
  keys: readonly Buffer[],
  uuid: string,
  version: number,
  token: string,
): number {
  const given = Buffer.alloc(tokenLength);
  given.write(token);
  let found = -1;
  for (const [place, key] of keys.entries()) {
    if (timingSafeEqual(Buffer.from(derive(key, uuid, version)), given)) found = place;
  }
  return token.length === tokenLength ? found : -1;
}

/** A token that `isToken` found right, to be compared by `isSameToken`. */
export function bytesOfToken(token: string): Buffer {
  // Its own few bytes: a slice of Node's pool would keep 8 KiB.
  const bytes = Buffer.alloc(tokenLength);
  bytes.write(token);
  return bytes;
}

/** Whether `token` is the one that is known, in constant time. */
export function isSameToken(known: Buffer, token: string): boolean {
  if (token.length !== tokenLength) return false;
  const given = Buffer.allocUnsafe(tokenLength);
  return given.write(token) === tokenLength && timingSafeEqual(known, given);
}

function derive(key: Buffer, uuid: string, version: number): string {
  const digest = createHmac('sha256', objectOf(key)).update(`${uuid}:${version}`).digest();
  return digest.subarray(0, tokenBytes).toString('base64url');
}

const objects = new WeakMap<Buffer, KeyObject>();

/** Made once: of bytes, each digest would make its own, which takes several times as long. */
function objectOf(key: Buffer): KeyObject {
  const known = objects.get(key);
  if (known) return known;
  const made = createSecretKey(key);
  objects.set(key, made);
  return made;
}
