import { createHash, randomUUID } from 'node:crypto';
import { errors, jwtVerify, SignJWT } from 'jose';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import type { UseKeys } from '../config/keys.ts';

const algorithm = 'HS256';
const issuer = 'sensorium';
// A device's token is no JWT, and nothing else is signed for this audience.
const audience = 'sensorium account';

const Claims = z.object({ sub: z.string(), sid: z.string(), iat: z.int(), exp: z.int() });
/** Account uuid, session, issue and expiry (seconds since the epoch, RFC 7519) of a token. */
type Claims = z.infer<typeof Claims>;

export type Tokens = {
  /** `issuedTs` and `expiresTs` in ms. */
  sign(claims: { sub: string; sid: string; issuedTs: number; expiresTs: number }): Promise<string>;
  /** Null unless this installation signed it. Whether it has expired is the caller's to judge. */
  verify(token: string): Promise<Claims | null>;
};

/**
 * JSON Web Tokens with a pinned algorithm, issuer and audience (RFC 8725). That a signature is right
 * does not change, so verified tokens are remembered, `remembered` at most; their expiry is not.
 */
export function createTokens(keys: UseKeys, remembered = 10_000): Tokens {
  const newest = newestKey(keys);
  const keysById = new Map(keys.map((key) => [keyId(key), key]));
  const verified = new LRUCache<string, Claims>({ max: remembered });

  return {
    sign: ({ sub, sid, issuedTs, expiresTs }) =>
      new SignJWT({ sid })
        .setProtectedHeader({ alg: algorithm, kid: keyId(newest) })
        .setSubject(sub)
        .setIssuer(issuer)
        .setAudience(audience)
        // Two of one second are two tokens, too.
        .setJti(randomUUID())
        .setIssuedAt(Math.floor(issuedTs / 1_000))
        .setExpirationTime(Math.floor(expiresTs / 1_000))
        .sign(newest),

    async verify(token) {
      const known = verified.get(token);
      if (known) return known;
      const claims = await verifySignature(token, keysById);
      if (!claims) return null;
      verified.set(token, claims);
      return claims;
    },
  };
}

async function verifySignature(token: string, keysById: Map<string, Buffer>) {
  try {
    const { payload } = await jwtVerify(
      token,
      (header) => {
        const key = keysById.get(header.kid ?? '');
        if (!key) throw new errors.JWSSignatureVerificationFailed();
        return key;
      },
      // The epoch as the current date: the caller checks expiry, each time it is used.
      // oxlint-disable-next-line no-restricted-globals -- a given time
      { algorithms: [algorithm], issuer, audience, currentDate: new Date(0) },
    );
    return Claims.parse(payload);
  } catch (error) {
    if (error instanceof errors.JOSEError || error instanceof z.ZodError) return null;
    throw error;
  }
}

/** The key that signs. Throws when there is none. */
export function newestKey(keys: UseKeys): Buffer {
  const key = keys[0];
  if (!key) throw new Error('There is no key to sign with.');
  return key;
}

function keyId(key: Buffer): string {
  return createHash('sha256').update(key).digest('base64url').slice(0, 8);
}
