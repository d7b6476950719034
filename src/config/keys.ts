import { hkdfSync } from 'node:crypto';

/**
 * The keys of one use, newest first: the first signs, all verify. Whoever holds one of them can
 * make nothing with it that another use accepts.
 */
export type UseKeys = Buffer[];

export type Keys = {
  /** HS256 signatures of account tokens (JWT). */
  accountTokens: UseKeys;
  /** What device tokens are derived from. */
  deviceTokens: UseKeys;
  /** Names the secrets of these keys, in the same order: what the database keeps of a device's token. */
  secretIds: string[];
  /** What refresh tokens are made and recognised with. */
  refreshTokens: UseKeys;
  /** What links in mails are signed with. */
  mailLinks: UseKeys;
  /** What the secrets of accounts' webhooks are derived from. */
  webhookSecrets: UseKeys;
  /** What answers are encrypted with that are kept for a repeated request. */
  keptAnswers: UseKeys;
};

/** A secret shorter than this many bytes is refused. */
export const minSecretBytes = 32;

/**
 * Derives one key of 32 bytes for each use (HKDF with SHA-256, RFC 5869). What the previous secret
 * signed is still accepted, so that a secret can be changed without locking anybody out.
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
 * What the database keeps of a secret to know it again, hexadecimal: a use of its own, so that no key
 * can be made of it.
 */
export function deriveSecretCheck(secret: string): string {
  return deriveKey(secret, 'secret check').toString('hex');
}

/** Names a secret by its check value: long enough to tell the two or three of one database apart. */
export const secretIdOf = (check: string): string => check.slice(0, 8);

function deriveKey(secret: string, use: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, 'sensorium', `v1 ${use}`, 32));
}
