import { hkdfSync } from 'node:crypto';
import { sealText, unsealText } from '../lib/sealed-text.ts';

/**
 * Encrypts text with a key derived from a token, which is not stored beside it. A token has 256 random
 * bits, so the key needs no stretching.
 */
export const seal = (text: string, token: string): string => sealText(text, keyOf(token));

/** Decrypts what `seal` gave. Throws for another token, and for text that was changed. */
export const unseal = (sealed: string, token: string): string => unsealText(sealed, keyOf(token));

function keyOf(token: string): Buffer {
  return Buffer.from(hkdfSync('sha256', token, 'sensorium', 'v1 refresh successor', 32));
}
