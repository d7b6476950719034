import { hkdfSync } from 'node:crypto';

/**
 * The keys for one use, newest first: the first signs, all verify. Nothing made with one of them is accepted for
 * another use.
 */
export type UseKeys = Buffer[];

export type Keys = {
  /** For HS256 signatures of account tokens (JWT). */
  accountTokens: UseKeys;
  /** For deriving device tokens. */
  deviceTokens: UseKeys;
  /** Identifies the secrets of these keys, in the same order. The database records one for each device's token. */
  secretIds: string[];
  /** For making and recognising refresh tokens. */
  refreshTokens: UseKeys;
  /** For signing links in mails. */
  mailLinks: UseKeys;
  /** For deriving the secrets of accounts' webhooks. */
  webhookSecrets: UseKeys;
  /** For encrypting answers that are kept for repeated requests. */
  keptAnswers: UseKeys;
};

/** The least length of a secret, in bytes. */
export const minSecretBytes = 32;

/**
 * Derives one key of 32 bytes for each use (HKDF with SHA-256, RFC 5869). What the previous secret signed is still
 * accepted, so that a secret can be changed without locking anybody out.
 */
export function deriveKeys(secret: string, previousSecret?: string): Keys {
  const secrets = previousSecret === undefined ? [secret] : [secret, previousSecret];
  const keysFor = (use: string): UseKeys => secrets.map((each) => deriveKey(each, use));
  return {
    accountTokens: keysFor('account tokens'),
    deviceTokens: keysFor('device tokens'),
    secretIds: secrets.map((each) => secretIdOf(deriveSecretCheck(each))),
    refreshTokens: keysFor('refresh tokens'),
    mailLinks: keysFor('mail links'),
    webhookSecrets: keysFor('webhook secrets'),
    keptAnswers: keysFor('kept answers'),
  };
}

/**
 * The check value by which the database recognises a secret, hexadecimal. It is derived for this use alone, so no key
 * can be computed from it.
 */
export function deriveSecretCheck(secret: string): string {
  return deriveKey(secret, 'secret check').toString('hex');
}

/** Identifies a secret by its check value: long enough to distinguish the two or three of one database. */
export const secretIdOf = (check: string): string => check.slice(0, 8);

function deriveKey(secret: string, use: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, 'sensorium', `v1 ${use}`, 32));
}
