import type { Sql } from '../db/sql.ts';
import type { Scope } from '../http/scope.ts';
import type { Key, NewKey } from './schema.ts';

/** A key as it is found by its hash. */
export type FoundKey = {
  id: number;
  keyId: string;
  accountId: number;
  accountUuid: string;
  scopes: Scope[];
  labels: string[];
  expiresTs: number | null;
  usedTs: number | null;
};

/** By hash, in hexadecimal digits; a key that is not there is left out. */
export async function loadKeys(sql: Sql, hashes: string[]): Promise<Map<string, FoundKey>> {
  const { rows } = await sql.query<FoundKey & { hash: string }>({
    // Prepared once per connection: every request with a key runs it.
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

/** Null when the account has no such key. */
export async function findKey(
  sql: Sql,
  accountId: number,
  keyId: string,
): Promise<FoundKey | null> {
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

/** Writes when a key was used last, never back. */
export async function noteUse(sql: Sql, id: number, usedTs: number): Promise<void> {
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

/** Gives the identifier that the key has from now on. */
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

/** Its name; null when the account has no such key. */
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
