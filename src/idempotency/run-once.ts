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
  /** What is kept is encrypted: answers hold tokens. */
  cipher: Cipher;
  /** The quota `idempotencyKeys`. */
  limitOf: (accountId: number) => number;
  /** Milliseconds that only go forward. */
  monotonicClock: MonotonicClock;
  /** How long a request waits for another one with its key. */
  waitMs?: number;
  /** A process that is silent for so long has ended. */
  leaseMs?: number;
};

/** Longer answers are made again from what was made. */
const maxAnswerLength = 65_536;
/** All that is kept of an account. */
const maxBytes = 16_777_216;
/** The sum of an account is looked at with each so large one, and with one of so many. */
const largeBytes = 16_384;
const lookedAtEvery = 64;

/**
 * Runs requests with an `Idempotency-Key` so that what they make is made once, also by several processes and
 * when one is killed: the key is claimed first, and the transaction that makes something writes into the
 * claim what it makes. Whoever finds that later answers from it. What is refused makes nothing and gives
 * the key back: a repetition is tried again.
 */
export function createRunOnce(deps: OnceDeps): RunOnce {
  const { db, cipher, waitMs = 15_000, leaseMs = 10_000 } = deps;
  const inProgress = createInProgress();
  // A claim is renewed while the request's own statements wait for their turn.
  const asNobody = AsyncLocalStorage.snapshot();

  /** The claim, or what another request with the key has made, which may have to be waited for. */
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
        // The answer is about to be written by whoever made it.
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

  /** Where this fails, a repetition is answered from what was made. */
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
      // Its first answer may never have left because no standby had it.
      await db.confirmReads();
      return answerAgain(accountId, begun.known, call);
    }
    const { claim } = begun;
    return inProgress.hold(name, async () => {
      const renew = () => asNobody(() => renewClaim(db, claim));
      const text = await make(deps, claim, { call, leaseMs, renew });
      await keepText(accountId, claim.id, text);
      return text;
    });
  };
}

type Making = { call: Parameters<RunOnce>[1]; leaseMs: number; renew: () => Promise<unknown> };

/** Makes it, and says meanwhile that it is being made. */
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
    // Where the commit went through after all, there is something kept, and it stays.
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

/** Who waits for a request of another process looks again after so long, and then less often. */
const firstPauseMs = 25;
const longestPauseMs = 1_000;
/** Requests of an account that wait, in this process. */
const maxWaiting = 50;

type Wait = {
  accountId: number;
  /** How long at most. */
  leftMs: number;
  /** How often it has looked before. */
  round: number;
  signal: AbortSignal;
};

type InProgress = {
  /** Runs what others with the same name wait for. */
  hold<T>(name: string, work: () => Promise<T>): Promise<T>;
  /** Waits until it is worth looking again; false where too many of the account wait already. */
  wait(name: string, waiting: Wait): Promise<boolean>;
};

/** Who waits for whom among requests with the same key. */
function createInProgress(): InProgress {
  const held = new Map<string, Promise<unknown>>();
  const waiting = new Map<number, number>();

  function count(accountId: number, by: number): void {
    const now = (waiting.get(accountId) ?? 0) + by;
    if (now > 0) waiting.set(accountId, now);
    else waiting.delete(accountId);
  }

  return {
    async hold(name, work) {
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

/** Whose key it is. `owner`: of an API key its identifier; null: a session's. */
type KeyPlace = { accountId: number; owner: string | null; hash: Buffer };

/** What is known of a key. */
type KnownKey = {
  id: number;
  request: Buffer;
  made: string | null;
  /** Null: it is not written yet; empty: it is too long. */
  answer: string | null;
  /** Whoever is making it, or is about to answer, has not said so for `leaseMs`. */
  isDead: boolean;
};

/** This attempt alone may write down what is made. */
type Claim = { id: number; attempt: number };

const noKey = '00000000-0000-0000-0000-000000000000';
/** After 24 hours a key is as if it had never been used. */
const keptMs = 24 * 3_600_000;

const valuesOf = ({ accountId, owner, hash }: KeyPlace) => [accountId, owner ?? noKey, hash];

/** Null where it was not used since `sinceTs` (ms). */
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

/** Takes a key that is free, too old, or whose owner is dead; null where another request was faster. */
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

/** Says that whoever has the claim is still at it. */
async function renewClaim(sql: Sql, { id, attempt }: Claim): Promise<void> {
  await sql.query(
    `update idempotency_key set alive_at = now()
      where id = $1 and attempt = $2 and made is null`,
    [id, attempt],
  );
}

/** Of a request that made nothing: the next one with the key starts again. */
async function releaseClaim(sql: Sql, { id, attempt }: Claim): Promise<void> {
  await sql.query('delete from idempotency_key where id = $1 and attempt = $2 and made is null', [
    id,
    attempt,
  ]);
}

/** Within the transaction that makes it; false where another attempt has taken over. */
async function keepMade(tx: InTransaction, { id, attempt }: Claim, made: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update idempotency_key set made = $3, bytes = $4, alive_at = now()
      where id = $1 and attempt = $2 and made is null`,
    [id, attempt, made, made.length],
  );
  return rowCount === 1;
}

/** What is said again from now on; empty: the answer is built each time from what was made. */
async function keepAnswer(sql: Sql, id: number, answer: string): Promise<void> {
  await sql.query(
    `update idempotency_key set answer = $2, bytes = bytes + $3
      where id = $1 and made is not null and answer is null`,
    [id, answer, answer.length],
  );
}

/** Forgets the oldest of an account, so that `count` of them and `bytes` are left. */
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

/** Of all accounts, at most `limit` that are older than `beforeTs` (ms). */
function forgetOldKeys(sql: Sql, beforeTs: number, limit: number) {
  return sql.query(
    `delete from idempotency_key
      where ctid = any(array(
        select ctid from idempotency_key where begun_at < ms_to_timestamp($1) limit $2
           for update skip locked))`,
    [beforeTs, limit],
  );
}

/** Keeps text so that whoever reads the database alone cannot read it. */
type Cipher = { seal(text: string): string; open(sealed: string): string };

/** `keys`: newest first; the first one seals, all open. */
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
          // Sealed before the secret was changed, with one of the others.
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

/** Forgets the keys whose 24 hours are over. `nowTs` in ms. */
export async function forgetKeys(sql: Sql, nowTs: WallMs, signal?: AbortSignal): Promise<void> {
  await deleteInBatches((limit) => forgetOldKeys(sql, nowTs - keptMs, limit), { signal });
}
