import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context } from 'koa';
import { LRUCache } from 'lru-cache';
import { DomainError } from '../errors.ts';
import { network } from '../lib/address.ts';
import type { MemoryBudget, Reservation } from '../lib/memory-budget.ts';
import { waitAtMost } from '../lib/wait.ts';
import { expectBody, type RequestState } from './body.ts';
import type { Account, Token } from './request.ts';
import type { Route } from './route.ts';

type ReserveDeps = {
  budget: MemoryBudget;
  /** A part of it, for those with a larger body: whoever lets these come slowly is in the way of these only. */
  largeBudget: MemoryBudget;
  /** Whether memory is short: nothing new is begun then. */
  isShort: () => boolean;
  /** Larger bodies are refused. */
  bodyLimitBytes: number;
  /** How long a request may wait for room before it is told to try again later. */
  patienceMs?: number;
};

/** What a request takes up from its body on until its answer is sent. */
type RequestPlace = Pick<Reservation, 'resize' | 'leave'>;

/**
 * Waits for the room that a request takes. Throws `unavailable`, to be answered 503 with Retry-After,
 * where that takes too long, too many wait already, or memory is short; and an error of status 413 at once
 * where a larger body is announced than the route takes.
 */
export type ReserveMemory = (
  ctx: Context,
  route: Route,
  caller: Account | Token | null,
) => Promise<RequestPlace>;

/** What most requests take at most, their body left out: rows, the answer as text, the answer as bytes. */
const usualBytes = 65_536;
/** Text, what is built from it, what is checked and what is stored: so many times the body. */
const bodyFactor = 4;
const comeLaterSeconds = 5;
const patienceMs = 5_000;
/** A body up to here is waited for before it takes any room: so much of it is kept by its connection anyway. */
const smallBytes = 16_384;
/** A larger one may take so long while others wait for its room. */
const arrivalMs = 2_000;

const noPlace: RequestPlace = { resize() {}, leave() {} };

export function createReserveMemory(deps: ReserveDeps): ReserveMemory {
  const { budget, largeBudget, isShort, bodyLimitBytes } = deps;
  const expected = createExpectedBodies();
  const answers = new StalledAnswers([budget, largeBudget]);
  return async (ctx, route, caller) => {
    if (route.isVital) return noPlace;
    if (isShort()) throw comeLater(ctx, 'The service is low on memory: try again later.');
    const body = route.body ? expectBody(ctx, route, bodyLimitBytes) : 0;
    const name = nameOf(ctx, caller);
    const answer = `${name} ${route.path}`;
    const most = route.answerBytes ?? usualBytes;
    const bytes = most > usualBytes ? expected.of(answer, usualBytes, most) : most;
    const enter = async (where: MemoryBudget, needed: number) => {
      // It left while it was found out who it is: nothing would tell that its place is free again.
      if (ctx.res.closed) throw comeLater(ctx, 'The client disconnected.');
      const place = where.enter(name, needed);
      if (!place) throw comeLater(ctx, 'Too many requests are waiting already: try again later.');
      // An answer that is being sent still takes its room, and so does a client that reads slowly.
      ctx.res.once('close', place.leave.bind(place));
      if (!place.isIn) {
        answers.hurry();
        await waitFor(place, ctx, deps.patienceMs ?? patienceMs);
      }
      return place;
    };
    // One in chunks is not kept unread, however short it must be.
    const isLarge = body > smallBytes || (body > 0 && ctx.get('transfer-encoding') !== '');
    if (isLarge) await enter(largeBudget, bodyFactor * body);
    else if (body > 0) await hasArrived(ctx.req);
    const place = await enter(budget, bytes + bodyFactor * body);
    if (isLarge) hurry(ctx, [largeBudget, budget], arrivalMs);
    answers.add(ctx.res);
    if (most <= usualBytes) return place;
    return {
      resize(taken) {
        place.resize(taken);
        expected.learn(answer, taken);
      },
      leave: place.leave.bind(place),
    };
  };
}

/** Ends a request whose body is still to come when others could have its room. */
function hurry({ req, res }: Context, budgets: MemoryBudget[], longestMs: number): void {
  const timer = setInterval(() => {
    if (req.complete) clearInterval(timer);
    else if (budgets.some((budget) => budget.isWanted)) req.destroy();
  }, longestMs);
  timer.unref();
  res.once('close', () => clearInterval(timer));
}

async function waitFor(place: Reservation, ctx: Context, longestMs: number): Promise<void> {
  const gone = new Promise<void>((resolve) => ctx.res.once('close', resolve));
  await waitAtMost(Promise.race([place.entered, gone]), longestMs);
  if (place.isIn) return;
  place.leave();
  throw comeLater(ctx, 'The service is overloaded: try again later.');
}

/** Not logged each time: a client that asks too often would fill the log. */
function comeLater(ctx: Context, message: string): DomainError {
  ctx['quiet'] = true;
  return new DomainError('unavailable', message, { retryAfterSeconds: comeLaterSeconds });
}

/** An account's requests share its room, those without an account their network's. */
function nameOf(ctx: Context, caller: Account | Token | null): string {
  if (caller && 'accountId' in caller) return `account ${caller.accountId}`;
  const { address } = ctx.state as RequestState;
  return `address ${network(address)}`;
}

/** Pairs of account and route that are remembered. */
const maxRemembered = 10_000;
/** An answer may turn out so many times as large as those before. */
const margin = 2;
/** How much of what was large once is still expected with each later answer. */
const decay = 0.99;

/**
 * What requests are expected to take, by what answers to the same took lately. What may be large mostly is
 * not: if each took the most that it could, few would run at once.
 */
type ExpectedBodies = {
  /** In bytes: between `least` and `most`, and `most` where nothing is known. */
  of(name: string, least: number, most: number): number;
  learn(name: string, bytes: number): void;
};

function createExpectedBodies(): ExpectedBodies {
  const largest = new LRUCache<string, number>({ max: maxRemembered });
  return {
    of(name, least, most) {
      const known = largest.get(name);
      return known === undefined ? most : Math.min(most, Math.max(least, margin * known));
    },
    learn(name, bytes) {
      largest.set(name, Math.max(bytes, decay * (largest.get(name) ?? 0)));
    },
  };
}

const lookMs = 1_000;
/** Shorter than others wait for room, so that the first of them has it. */
const stalledMs = 3_000;

/** What a client had taken when it was looked at, and how often it took nothing since. */
type Seen = { takenBytes: number; stalledMs: number };

/**
 * Answers that take room until their clients have taken them. While others wait for that room, an answer of which
 * nothing was taken for three seconds is broken off, and its connection closed.
 */
class StalledAnswers {
  readonly #budgets: readonly Pick<MemoryBudget, 'isWanted'>[];
  readonly #open = new Map<ServerResponse, Seen>();
  #timer: NodeJS.Timeout | undefined;

  constructor(budgets: readonly Pick<MemoryBudget, 'isWanted'>[]) {
    this.#budgets = budgets;
  }

  add(response: ServerResponse): void {
    this.#open.set(response, { takenBytes: -1, stalledMs: 0 });
    response.once('close', () => this.#open.delete(response));
  }

  /** Somebody waits for room: answers are looked at for as long as somebody does. */
  hurry(): void {
    this.#timer ??= setInterval(() => this.#look(), lookMs).unref();
  }

  #look(): void {
    if (this.#budgets.some((budget) => budget.isWanted)) {
      for (const [response, seen] of this.#open) {
        if (isStalled(response, seen)) response.destroy();
      }
      return;
    }
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** An answer that is still being made waits for nobody: only what its connection could not hand over counts. */
function isStalled({ socket }: ServerResponse, seen: Seen): boolean {
  const waitingBytes = socket?.writableLength ?? 0;
  const takenBytes = (socket?.bytesWritten ?? 0) - waitingBytes;
  const tookSome = waitingBytes === 0 || takenBytes !== seen.takenBytes;
  seen.takenBytes = takenBytes;
  seen.stalledMs = tookSome ? 0 : seen.stalledMs + lookMs;
  return seen.stalledMs >= stalledMs;
}

/**
 * Resolves once all of a body has come, and reads nothing of it: for one that a connection keeps unread. Throws
 * `invalid-input` where the client leaves before.
 */
async function hasArrived(request: IncomingMessage): Promise<void> {
  if (request.complete) return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onReadable = () => {
    if (request.complete) resolve();
  };
  const onClose = () => reject(new DomainError('invalid-input', 'The request body ended early.'));
  request.on('readable', onReadable).once('close', onClose);
  if (request.destroyed) onClose();
  try {
    await promise;
  } finally {
    // Whoever reads it begins as if nobody had listened.
    request.off('readable', onReadable).off('close', onClose);
  }
}
