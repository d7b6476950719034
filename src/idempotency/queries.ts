import type { Sql } from '../db/sql.ts';
import type { InTransaction } from '../http/once.ts';
import { throwGone } from '../quotas/quotas.ts';

/** Whose key it is. `owner`: of an API key its identifier; null: a session's. */
export type KeyPlace = { accountId: number; owner: string | null; hash: Buffer };

/** What is known of a key. */
export type KnownKey = {
  id: number;
  request: Buffer;
  made: string | null;
  /** Null: it is not written yet; empty: it is too long. */
  answer: string | null;
  /** Whoever is making it, or is about to answer, has not said so for `leaseMs`. */
  isDead: boolean;
};

/** This attempt alone may write down what is made. */
export type Claim = { id: number; attempt: number };

const noKey = '00000000-0000-0000-0000-000000000000';
/** After 24 hours a key is as if it had never been used. */
export const keptMs = 24 * 3_600_000;

const valuesOf = ({ accountId, owner, hash }: KeyPlace) => [accountId, owner ?? noKey, hash];

/** Null where it was not used since `sinceTs` (ms). */
export async function findKnownKey(
  sql: Sql,
  place: KeyPlace,
  { sinceTs, leaseMs }: { sinceTs: number; leaseMs: number },
): Promise<KnownKey | null> {
  const { rows } = await sql.query<KnownKey>(
    `select id, request, made, answer,
            alive_at < now() - $5 * interval '1 millisecond' as "isDead"
       from idempotency_key
      where account_id = $1 and owner = $2 and hash = $3 and begun_at > ms_to_timestamp($4)`,
    [...valuesOf(place), sinceTs, leaseMs],
  );
  return rows[0] ?? null;
}

/** Takes a key that is free, too old, or whose owner is dead; null where another request was faster. */
export async function claimKey(
  sql: Sql,
  place: KeyPlace,
  { request, ts, leaseMs }: { request: Buffer; ts: number; leaseMs: number },
): Promise<Claim | null> {
  const { rows } = await sql
    .query<Claim>(
      `insert into idempotency_key as k (account_id, owner, hash, request, begun_at, alive_at)
     values ($1, $2, $3, $4, ms_to_timestamp($5), now())
     on conflict (account_id, owner, hash) do update
        set request = excluded.request, begun_at = excluded.begun_at, alive_at = now(),
            attempt = k.attempt + 1, made = null, answer = null, bytes = 0
      where k.begun_at <= ms_to_timestamp($6)
         or (k.made is null and k.alive_at < now() - $7 * interval '1 millisecond')
     returning id, attempt`,
      [...valuesOf(place), request, ts, ts - keptMs, leaseMs],
    )
    .catch(throwGone);
  return rows[0] ?? null;
}

/** Says that whoever has the claim is still at it. */
export async function renewClaim(sql: Sql, { id, attempt }: Claim): Promise<void> {
  await sql.query(
    `update idempotency_key set alive_at = now()
      where id = $1 and attempt = $2 and made is null`,
    [id, attempt],
  );
}

/** Of a request that made nothing: the next one with the key starts again. */
export async function releaseClaim(sql: Sql, { id, attempt }: Claim): Promise<void> {
  await sql.query('delete from idempotency_key where id = $1 and attempt = $2 and made is null', [
    id,
    attempt,
  ]);
}

/** Within the transaction that makes it; false where another attempt has taken over. */
export async function keepMade(
  tx: InTransaction,
  { id, attempt }: Claim,
  made: string,
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update idempotency_key set made = $3, bytes = $4, alive_at = now()
      where id = $1 and attempt = $2 and made is null`,
    [id, attempt, made, made.length],
  );
  return rowCount === 1;
}

/** What is said again from now on; empty: the answer is built each time from what was made. */
export async function keepAnswer(sql: Sql, id: number, answer: string): Promise<void> {
  await sql.query(
    `update idempotency_key set answer = $2, bytes = bytes + $3
      where id = $1 and made is not null and answer is null`,
    [id, answer, answer.length],
  );
}

/** Forgets the oldest of an account, so that `count` of them and `bytes` are left. */
export async function forgetBeyond(
  sql: Sql,
  accountId: number,
  { count, bytes }: { count: number; bytes: number },
): Promise<void> {
  await sql.query(
    `delete from idempotency_key
      where id = any(array(
        select id
          from (select id, row_number() over newest as place, sum(bytes) over newest as bytes
                  from idempotency_key
                 where account_id = $1 and made is not null
                window newest as (order by begun_at desc, id desc)) k
         where place > $2 or bytes > $3))`,
    [accountId, count, bytes],
  );
}

/** Of all accounts, at most `limit` that are older than `beforeTs` (ms). */
export function forgetOldKeys(sql: Sql, beforeTs: number, limit: number) {
  return sql.query(
    `delete from idempotency_key
      where ctid = any(array(
        select ctid from idempotency_key where begun_at < ms_to_timestamp($1) limit $2
           for update skip locked))`,
    [beforeTs, limit],
  );
}
