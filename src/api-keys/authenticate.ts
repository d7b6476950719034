import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import type { Account } from '../http/request.ts';
import { coalesce } from '../lib/coalesce.ts';
import { hashKeyText } from './key-text.ts';
import { findKey, type FoundKey, loadKeys, noteUse } from './api-keys.ts';

export type KeyAuthDeps = {
  db: Sql;
  clock: () => number;
  /** Whether the operator has shut the account out. */
  isDisabled: (accountId: number) => boolean;
  onError: (error: unknown) => void;
};

const minuteMs = 60_000;

export type KeyAuthentication = {
  /** Throws `unauthenticated`. */
  authenticate: (key: string) => Promise<Account>;
  /** The same by its identifier, for what a key has made. */
  find: (accountId: number, keyId: string) => Promise<Account>;
};

/**
 * Says whose a key is. It is looked up each time, so that one that was revoked opens nothing from then on,
 * in any process.
 */
export function createKeyAuthentication({
  db,
  clock,
  isDisabled,
  onError,
}: KeyAuthDeps): KeyAuthentication {
  const { find } = coalesce({ load: (hashes: string[]) => loadKeys(db, hashes), parallel: 2 });

  function note({ id, usedTs }: FoundKey, nowTs: number): void {
    if (usedTs !== null && nowTs - usedTs < minuteMs) return;
    void noteUse(db, id, nowTs).catch(onError);
  }

  function accept(found: FoundKey | null): Account {
    const nowTs = clock();
    if (!found || (found.expiresTs !== null && found.expiresTs <= nowTs)) throw noSuchKey();
    const { accountId, accountUuid, keyId, scopes, labels } = found;
    if (isDisabled(accountId)) throw noSuchKey();
    note(found, nowTs);
    return { accountId, accountUuid, sessionId: keyId, key: { keyId, scopes, labels } };
  }

  return {
    async authenticate(text) {
      const hash = hashKeyText(text);
      return accept(hash && (await find(hash.toString('hex'))));
    },
    find: async (accountId, keyId) => accept(await findKey(db, accountId, keyId)),
  };
}

function noSuchKey(): DomainError {
  return new DomainError('unauthenticated', 'The API key is unknown, revoked or expired.');
}
