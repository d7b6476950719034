import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import type { Database } from '../db/database.ts';
import { deleteInBatches, type Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import type { InTransaction, Keep, KeyedRequest, RunOnce } from '../http/answer.ts';
import { sealText, unsealText } from '../lib/crypto.ts';
import { pause, waitAtMost } from '../lib/wait.ts';
import { throwGone } from '../quotas/quotas.ts';
import type { MonotonicClock, WallMs } from '../lib/clock-readings.ts';

type OnceDeps = {
  db: Sql & Pick<Database, 'confirmReads'>;
  /** Encrypts what is kept, because answers contain tokens. */
  cipher: Cipher;
  /** The quota `idempotencyKeys`. */
  limitOf: (accountId: number) => number;
  /** A monotonic clock, ms. */
  monotonicClock: MonotonicClock;
  /** How long a request waits for another one with its key. */
  waitMs?: number;
  /** A process that does not renew its claim for this long has ended. */
  leaseMs?: number;
};

/** Longer answers are not kept, but built again from what was made. */
const maxAnswerLength = 65_536;
/** What is kept of one account, in bytes. */
const maxBytes = 16_777_216;
/** An account's total is checked after each answer this large, and after one in this many others. */
const largeBytes = 16_384;
const lookedAtEvery = 64;

/**
 * Runs requests with an `Idempotency-Key` so that what they create is created only once, even with several processes
 * and if one is killed. A request first claims the key, and the transaction that creates something records it in the
 * claim. Whoever finds that later answers from it. A refused request creates nothing and releases the key, so that a
 * repetition is tried anew.
 */
export function createRunOnce(deps: OnceDeps): RunOnce {
  const { db, cipher, waitMs = 15_000, leaseMs = 10_000 } = deps;
  const inProgress = createInProgress();
  // Claims are renewed outside the request, whose own statements may wait for their turn.
  const asNobody = AsyncLocalStorage.snapshot();

  /** Claims the key, or returns what another request with the key has made, after waiting for it if necessary. */
  async function begin(
    place: KeyPlace,
    name: string,
    request: KeyedRequest,
  ): Promise<{ claim: Claim } | { known: KnownKey }> {
    const ts = request.receivedTs;
    const endMs = deps.monotonicClock() + waitMs;
    for (let round = 0; ; round += 1) {
      const known = await findKnownKey(db, place, { sinceTs: ts - keptMs, leaseMs });
      if (known && (!known.isDead || known.made !== null)) {
        if (!known.request.equals(request.fingerprint)) throw usedForAnother();
        // Otherwise the process that made it is about to write the answer.
        const isAnswered = known.made !== null && (known.answer !== null || known.isDead);
        if (isAnswered) return { known };
        const leftMs = endMs - deps.monotonicClock();
        const { signal } = request;
        const { accountId } = place;
        if (leftMs <= 0 || signal.aborted) throw underWay();
        if (!(await inProgress.wait(name, { accountId, leftMs, round, signal }))) throw underWay();
        continue;
      }
      const claim = await claimKey(db, place, { request: request.fingerprint, ts, leaseMs });
      if (claim) return { claim };
    }
  }

  /** Keeps an answer. If this fails, a repetition is answered from what was made. */
  async function keepText(accountId: number, id: number, text: string): Promise<void> {
    const isLarge = text.length > largeBytes;
    const kept = { count: deps.limitOf(accountId), bytes: maxBytes };
    const answer = text.length > maxAnswerLength ? '' : cipher.seal(text);
    await keepAnswer(db, id, answer).catch(ignore);
    if (isLarge || id % lookedAtEvery === 0) await forgetBeyond(db, accountId, kept).catch(ignore);
  }

  async function answerAgain(
    accountId: number,
    { id, made, answer }: KnownKey,
    call: Parameters<RunOnce>[1],
  ): Promise<string> {
    if (answer) return cipher.open(answer);
    const text = await call(async () => JSON.parse(cipher.open(made ?? '')) as never);
    if (answer === null) await keepText(accountId, id, text);
    return text;
  }

  return async (request, call) => {
    const { accountId, key, sessionId } = request.account;
    const owner = key ? sessionId : null;
    const hash = createHash('sha256').update(request.key).digest();
    const place = { accountId, owner, hash };
    const name = `${accountId} ${owner} ${hash.toString('base64')}`;
    const begun = await begin(place, name, request);
    if ('known' in begun) {
      // Its first answer may never have left because no standby had the commit.
      await db.confirmReads();
      return answerAgain(accountId, begun.known, call);
    }
    const { claim } = begun;
    return inProgress.claim(name, async () => {
      const renew = () => asNobody(() => renewClaim(db, claim));
      const text = await make(deps, claim, { call, leaseMs, renew });
      await keepText(accountId, claim.id, text);
      return text;
    });
  };
}

type Making = { call: Parameters<RunOnce>[1]; leaseMs: number; renew: () => Promise<unknown> };

/** Runs the request, and renews the claim meanwhile. */
async function make(
  { db, cipher }: OnceDeps,
  claim: Claim,
  { call, leaseMs, renew }: Making,
): Promise<string> {
  let isKept = false;
  const keep: Keep<object> = async (tx, made) => {
    if (!(await keepMade(tx, claim, cipher.seal(JSON.stringify(made))))) throw underWay();
    isKept = true;
  };
  let renewing: Promise<unknown> = Promise.resolve();
  const timer = setInterval(() => {
    renewing = renewing.then(renew).catch(ignore);
  }, leaseMs / 3);
  try {
    const text = await call((work) => work(keep));
    if (!isKept) throw new Error('A route with an Idempotency-Key did not record what it created.');
    return text;
  } catch (error) {
    // If the commit succeeded after all, what was made is recorded and the claim stays.
    await releaseClaim(db, claim).catch(ignore);
    throw error;
  } finally {
    clearInterval(timer);
  }
}

const ignore = () => undefined;

/** draft-ietf-httpapi-idempotency-key-header section 2.7. */
const usedForAnother = () =>
  new DomainError('key-reused', 'This Idempotency-Key was already used for a different request.');

const underWay = () =>
  new DomainError('conflict', 'Another request with this Idempotency-Key is still in progress.');

/** How soon a request that waits for another process looks again; the pause grows each time. */
const firstPauseMs = 25;
const longestPauseMs = 1_000;
/** How many requests of an account may wait in this process. */
const maxWaiting = 50;

type Wait = {
  accountId: number;
  /** How long it may wait at most. */
  leftMs: number;
  /** How often it has looked before. */
  round: number;
  signal: AbortSignal;
};

type InProgress = {
  /** Runs work that others with the same name wait for. */
  claim<T>(name: string, work: () => Promise<T>): Promise<T>;
  /** Waits until it is worth looking again. False if too many requests of the account wait already. */
  wait(name: string, waiting: Wait): Promise<boolean>;
};

/** Lets requests with the same key wait for each other. */
function createInProgress(): InProgress {
  const held = new Map<string, Promise<unknown>>();
  const waiting = new Map<number, number>();

  function count(accountId: number, by: number): void {
    const now = (waiting.get(accountId) ?? 0) + by;
    if (now > 0) waiting.set(accountId, now);
    else waiting.delete(accountId);
  }

  return {
    async claim(name, work) {
      const working = work();
      const settled = working.then(ignore, ignore);
      held.set(name, settled);
      try {
        return await working;
      } finally {
        if (held.get(name) === settled) held.delete(name);
      }
    },
    async wait(name, { accountId, leftMs, round, signal }) {
      if ((waiting.get(accountId) ?? 0) >= maxWaiting) return false;
      count(accountId, 1);
      try {
        const here = held.get(name);
        const longestMs = Math.min(leftMs, longestPauseMs, firstPauseMs * 2 ** round);
        if (here) await waitAtMost(here, leftMs);
        else await pause(longestMs, signal);
        return true;
      } finally {
        count(accountId, -1);
      }
    },
  };
}

/** Whose key it is. `owner`: the identifier of an API key; null for a session. */
type KeyPlace = { accountId: number; owner: string | null; hash: Buffer };

/** What is stored about a key. */
type KnownKey = {
  id: number;
  request: Buffer;
  made: string | null;
  /** Null: not written yet. Empty: too long to keep. */
  answer: string | null;
  /** Whoever is making it, or is about to answer, has not renewed the claim for `leaseMs`. */
  isDead: boolean;
};

/** Only this attempt may record what is made. */
type Claim = { id: number; attempt: number };

const noKey = '00000000-0000-0000-0000-000000000000';
/** After 24 hours a key counts as unused. */
const keptMs = 24 * 3_600_000;

const valuesOf = ({ accountId, owner, hash }: KeyPlace) => [accountId, owner ?? noKey, hash];

/** Null if the key was not used since `sinceTs` (ms). */
async function findKnownKey(
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

/** Claims a key that is free, too old, or whose owner is dead. Null if another request was faster. */
async function claimKey(
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

/** Shows that the owner of the claim still works. */
async function renewClaim(sql: Sql, { id, attempt }: Claim): Promise<void> {
  await sql.query(
    `update idempotency_key set alive_at = now()
      where id = $1 and attempt = $2 and made is null`,
    [id, attempt],
  );
}

/** Releases the claim of a request that made nothing, so that the next one with the key starts anew. */
async function releaseClaim(sql: Sql, { id, attempt }: Claim): Promise<void> {
  await sql.query('delete from idempotency_key where id = $1 and attempt = $2 and made is null', [
    id,
    attempt,
  ]);
}

/** Records what is made, in the transaction that makes it. False if another attempt has taken over. */
async function keepMade(tx: InTransaction, { id, attempt }: Claim, made: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update idempotency_key set made = $3, bytes = $4, alive_at = now()
      where id = $1 and attempt = $2 and made is null`,
    [id, attempt, made, made.length],
  );
  return rowCount === 1;
}

/** Stores the answer for repetitions. Empty: it is built each time from what was made. */
async function keepAnswer(sql: Sql, id: number, answer: string): Promise<void> {
  await sql.query(
    `update idempotency_key set answer = $2, bytes = bytes + $3
      where id = $1 and made is not null and answer is null`,
    [id, answer, answer.length],
  );
}

/** Deletes the oldest keys of an account, so that at most `count` of them and `bytes` bytes are left. */
async function forgetBeyond(
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

/** Deletes at most `limit` keys of all accounts that are older than `beforeTs` (ms). */
function forgetOldKeys(sql: Sql, beforeTs: number, limit: number) {
  return sql.query(
    `delete from idempotency_key
      where ctid = any(array(
        select ctid from idempotency_key where begun_at < ms_to_timestamp($1) limit $2
           for update skip locked))`,
    [beforeTs, limit],
  );
}

/** Encrypts text, so that reading the database alone does not reveal it. */
type Cipher = { seal(text: string): string; open(sealed: string): string };

/** `keys`: newest first. The first one encrypts, any of them decrypts. */
export function createCipher(keys: readonly Buffer[]): Cipher {
  const [newest] = keys;
  if (!newest) throw new Error('no key to seal with');
  return {
    seal: (text) => sealText(text, newest),
    open(sealed) {
      for (const key of keys) {
        try {
          return unsealText(sealed, key);
        } catch {
          // It was encrypted with another key, before the secret was changed.
        }
      }
      throw new DomainError(
        'conflict',
        'The request was carried out, but its answer can no longer be read, because the secret ' +
          'has changed since.',
      );
    },
  };
}

/** Deletes keys older than 24 hours. `nowTs` in ms. */
export async function forgetKeys(sql: Sql, nowTs: WallMs, signal?: AbortSignal): Promise<void> {
  await deleteInBatches((limit) => forgetOldKeys(sql, nowTs - keptMs, limit), { signal });
}
