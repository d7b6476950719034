import { createHash, randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { type Account, type Scope, scopes } from '../http/request.ts';
import { timestamp } from '../http/schema.ts';
import { coalesce } from '../lib/coalesce.ts';
import type { Clock, WallMs } from '../lib/clock-readings.ts';

type KeyAuthDeps = {
  db: Sql;
  clock: Clock;
  /** Whether the operator has disabled the account. */
  isDisabled: (accountId: number) => boolean;
  onError: (error: unknown) => void;
};

const minuteMs = 60_000;

/** Finds whose a key or a session is. Both members throw `unauthenticated`. */
type Authentication = {
  authenticate: (token: string) => Promise<Account>;
  /** The same by the identifier, for things that its holder has made. */
  find: (accountId: number, holderId: string) => Promise<Account>;
};

/**
 * Finds the account of a key. It looks the key up each time, so that a revoked key is refused from then on, in any
 * process.
 */
export function createKeyAuthentication({
  db,
  clock,
  isDisabled,
  onError,
}: KeyAuthDeps): Authentication {
  const { find } = coalesce({ load: (hashes: string[]) => loadKeys(db, hashes), parallel: 2 });

  function note({ id, usedTs }: FoundKey, nowTs: WallMs): void {
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

type Holder = { accountId: number; holderId: string; isOfKey: boolean };

/** Authenticates by API keys and by sessions. */
export function createAuthentication(keys: Authentication, sessions: Authentication) {
  return {
    /** The account of a bearer token. Throws `unauthenticated`. */
    authenticate: (token: string): Promise<Account> =>
      isKeyText(token) ? keys.authenticate(token) : sessions.authenticate(token),
    /** The account of a key or a session by its identifier. Throws `unauthenticated`. */
    findHolder: ({ accountId, holderId, isOfKey }: Holder): Promise<Account> =>
      isOfKey ? keys.find(accountId, holderId) : sessions.find(accountId, holderId),
  };
}

function noSuchKey(): DomainError {
  return new DomainError('unauthenticated', 'The API key is unknown, revoked or expired.');
}

/** A key as it is found by its hash. */
type FoundKey = {
  id: number;
  keyId: string;
  accountId: number;
  accountUuid: string;
  scopes: Scope[];
  labels: string[];
  expiresTs: number | null;
  usedTs: number | null;
};

/** By hash, in hexadecimal digits. Keys that do not exist are missing. */
async function loadKeys(sql: Sql, hashes: string[]): Promise<Map<string, FoundKey>> {
  const { rows } = await sql.query<FoundKey & { hash: string }>({
    // Prepared once per connection, because every request with a key runs it.
    name: 'load-api-keys',
    text: `
      select k.id, encode(k.hash, 'hex') as hash, k.uuid as "keyId", k.account_id as "accountId",
             a.uuid as "accountUuid", k.scopes, k.labels, k.expires_at as "expiresTs",
             k.used_at as "usedTs"
        from unnest($1::text[]) as wanted (hash)
        join api_key k on k.hash = decode(wanted.hash, 'hex')
        join account a on a.id = k.account_id and a.removed_at is null`,
    values: [hashes],
  });
  return new Map(rows.map(({ hash, ...key }) => [hash, key]));
}

/** Null if the account has no such key. */
async function findKey(sql: Sql, accountId: number, keyId: string): Promise<FoundKey | null> {
  const { rows } = await sql.query<FoundKey>({
    name: 'find-api-key',
    text: `
      select k.id, k.uuid as "keyId", k.account_id as "accountId", a.uuid as "accountUuid",
             k.scopes, k.labels, k.expires_at as "expiresTs", k.used_at as "usedTs"
        from api_key k
        join account a on a.id = k.account_id and a.removed_at is null
       where k.account_id = $1 and k.uuid = $2`,
    values: [accountId, keyId],
  });
  return rows[0] ?? null;
}

/** Writes when a key was last used; never an earlier time. */
async function noteUse(sql: Sql, id: number, usedTs: number): Promise<void> {
  await sql.query(
    `update api_key set used_at = ms_to_timestamp($2)
      where id = $1 and coalesce(used_at, '-infinity') < ms_to_timestamp($2)`,
    [id, usedTs],
  );
}

export async function countKeys(sql: Sql, accountId: number): Promise<number> {
  const { rows } = await sql.query<{ count: number }>(
    'select count(*)::integer as count from api_key where account_id = $1',
    [accountId],
  );
  return rows[0]?.count ?? 0;
}

/** Returns the identifier of the new key. */
export async function insertKey(
  sql: Sql,
  accountId: number,
  {
    name,
    scopes,
    labels,
    expiresTs,
    hash,
    createdTs,
  }: NewKey & { hash: Buffer; createdTs: number },
): Promise<string> {
  const { rows } = await sql.query<{ uuid: string }>(
    `insert into api_key (account_id, hash, name, scopes, labels, created_at, expires_at)
     values ($1, $2, $3, $4, $5, ms_to_timestamp($6), ms_to_timestamp($7))
     returning uuid`,
    [accountId, hash, name, scopes, labels, createdTs, expiresTs ?? null],
  );
  return rows[0]?.uuid ?? '';
}

/** Newest first. */
export async function listKeys(sql: Sql, accountId: number): Promise<Key[]> {
  const { rows } = await sql.query<Key>(
    `select uuid as "keyId", name, scopes, labels, created_at as "createdTs",
            expires_at as "expiresTs", used_at as "lastUsedTs"
       from api_key
      where account_id = $1
      order by id desc`,
    [accountId],
  );
  return rows;
}

/** Returns the key's name; null if the account has no such key. */
export async function deleteKey(
  sql: Sql,
  accountId: number,
  keyId: string,
): Promise<string | null> {
  const { rows } = await sql.query<{ name: string }>(
    'delete from api_key where account_id = $1 and uuid = $2 returning name',
    [accountId, keyId],
  );
  return rows[0]?.name ?? null;
}

const prefix = 'sens_';
/** 256 bits as base64url. */
const pattern = /^sens_[\w-]{43}$/;

/** A key is recognised by its prefix, which no session token has. */
const isKeyText = (token: string): boolean => token.startsWith(prefix);

export function makeKeyText(): string {
  return prefix + randomBytes(32).toString('base64url');
}

/** SHA-256 is enough, because a key is random and cannot be guessed. Null for text that cannot be a key. */
export function hashKeyText(text: string): Buffer | null {
  return pattern.test(text) ? createHash('sha256').update(text).digest() : null;
}

const Scopes = z
  .array(z.enum(scopes))
  .min(1, 'name at least one scope')
  .max(scopes.length)
  .overwrite((list) => [...new Set(list)]);

/** The body of POST /v2/accounts/keys. */
export const NewKey = z.object({
  name: z.string().min(1).max(200),
  scopes: Scopes,
  labels: z.array(z.string().min(1).max(64)).max(20).default([]).meta({
    description: 'Only devices with one of these labels. Empty: all devices of the account.',
  }),
  expiresTs: timestamp
    .optional()
    .meta({ description: 'The key expires at this time. Absent: valid until it is revoked.' }),
});
export type NewKey = z.infer<typeof NewKey>;

export const MadeKey = z.object({
  keyId: z.guid(),
  key: z.string().meta({ description: 'Returned only once. Send it as a bearer token.' }),
  timestamp,
});
export type MadeKey = z.infer<typeof MadeKey>;

const Key = z
  .object({
    keyId: z.guid(),
    name: z.string(),
    scopes: z.array(z.enum(scopes)),
    labels: z.array(z.string()),
    createdTs: timestamp,
    expiresTs: timestamp.nullable(),
    lastUsedTs: timestamp.nullable().meta({ description: 'Accurate to a minute; null: never.' }),
  })
  .meta({ id: 'ApiKey' });
export type Key = z.infer<typeof Key>;

export const KeyList = z.object({ keys: z.array(Key), timestamp });
