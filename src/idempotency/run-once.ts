import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import type { KeyedRequest, Keep, RunOnce } from '../http/once.ts';
import type { Box } from './box.ts';
import { createSeats } from './seats.ts';
import {
  claimKey,
  findKnownKey,
  forgetBeyond,
  keepAnswer,
  keepMade,
  keptMs,
  releaseClaim,
  renewClaim,
  type Claim,
  type KeyPlace,
  type KnownKey,
} from './queries.ts';

export type OnceDeps = {
  db: Sql & Pick<Database, 'confirmReads'>;
  /** What is kept is encrypted: answers hold tokens. */
  box: Box;
  /** The quota `idempotencyKeys`. */
  limitOf: (accountId: number) => number;
  /** Milliseconds that only go forward. */
  nowMs: () => number;
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
  const { db, box, waitMs = 15_000, leaseMs = 10_000 } = deps;
  const seats = createSeats();
  // A claim is renewed while the request's own statements wait for their turn.
  const asNobody = AsyncLocalStorage.snapshot();

  /** The claim, or what another request with the key has made, which may have to be waited for. */
  async function begin(
    place: KeyPlace,
    name: string,
    request: KeyedRequest,
  ): Promise<{ claim: Claim } | { known: KnownKey }> {
    const ts = request.receivedTs;
    const endMs = deps.nowMs() + waitMs;
    for (let round = 0; ; round += 1) {
      const known = await findKnownKey(db, place, { sinceTs: ts - keptMs, leaseMs });
      if (known && (!known.isDead || known.made !== null)) {
        if (!known.request.equals(request.fingerprint)) throw usedForAnother();
        // The answer is about to be written by whoever made it.
        const isAnswered = known.made !== null && (known.answer !== null || known.isDead);
        if (isAnswered) return { known };
        const leftMs = endMs - deps.nowMs();
        const { signal } = request;
        const { accountId } = place;
        if (leftMs <= 0 || signal.aborted) throw underWay();
        if (!(await seats.wait(name, { accountId, leftMs, round, signal }))) throw underWay();
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
    const answer = text.length > maxAnswerLength ? '' : box.seal(text);
    await keepAnswer(db, id, answer).catch(ignore);
    if (isLarge || id % lookedAtEvery === 0) await forgetBeyond(db, accountId, kept).catch(ignore);
  }

  async function answerAgain(
    accountId: number,
    { id, made, answer }: KnownKey,
    call: Parameters<RunOnce>[1],
  ): Promise<string> {
    if (answer) return box.open(answer);
    const text = await call(async () => JSON.parse(box.open(made ?? '')) as never);
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
    return seats.hold(name, async () => {
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
  { db, box }: OnceDeps,
  claim: Claim,
  { call, leaseMs, renew }: Making,
): Promise<string> {
  let isKept = false;
  const keep: Keep<object> = async (tx, made) => {
    if (!(await keepMade(tx, claim, box.seal(JSON.stringify(made))))) throw underWay();
    isKept = true;
  };
  let renewing: Promise<unknown> = Promise.resolve();
  const timer = setInterval(() => {
    renewing = renewing.then(renew).catch(ignore);
  }, leaseMs / 3);
  try {
    const text = await call((work) => work(keep));
    if (!isKept) throw new Error('A route with an Idempotency-Key kept nothing of what it made.');
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
  new DomainError('key-reused', 'This Idempotency-Key was used for another request.');

const underWay = () =>
  new DomainError('conflict', 'Another request with this Idempotency-Key is still under way.');
