import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context } from 'koa';
import { LRUCache } from 'lru-cache';
import { DomainError } from '../errors.ts';
import { network } from '../lib/address.ts';
import type { MemoryBudget, Reservation } from '../lib/fair-budget.ts';
import { waitAtMost } from '../lib/wait.ts';
import { expectBody, type RequestState } from './body.ts';
import type { Account, Token } from './request.ts';
import type { Route } from './route.ts';

type ReserveDeps = {
  budget: MemoryBudget;
  /** A part of it for large bodies, so that a client that sends one slowly delays only other large ones. */
  largeBudget: MemoryBudget;
  /** Whether memory is short: then no new request begins. */
  isShort: () => boolean;
  /** Larger bodies are refused. */
  bodyLimitBytes: number;
  /** How long a request may wait for memory before it is told to try again later. */
  patienceMs?: number;
};

/** The memory that a request reserves, from its body until its answer is sent. */
type RequestPlace = Pick<Reservation, 'resize' | 'leave'>;

/**
 * Waits for the memory that a request needs. Throws `unavailable` (503 with Retry-After) if that takes too long, too
 * many requests wait already, or memory is short. Throws an error with status 413 at once if the announced body is
 * larger than the route takes.
 */
export type ReserveMemory = (
  ctx: Context,
  route: Route,
  caller: Account | Token | null,
) => Promise<RequestPlace>;

/** The most that most requests take without their body: rows, the answer as text, the answer as bytes. */
const usualBytes = 65_536;
/** Multiple of the body's size: its text, what is parsed from it, checked and stored. */
const bodyFactor = 4;
const comeLaterSeconds = 5;
const patienceMs = 5_000;
/** Up to this size the service waits for a body before it reserves memory: the connection buffers that much anyway. */
const smallBytes = 16_384;
/** How long a larger body may take to arrive while others wait for its memory. */
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
      // The client left during authentication: no `close` event would release the reservation.
      if (ctx.res.closed) throw comeLater(ctx, 'The client disconnected.');
      const place = where.enter(name, needed);
      if (!place) throw comeLater(ctx, 'Too many requests are waiting already: try again later.');
      // The memory stays reserved while the answer is being sent, for a client that reads slowly too.
      ctx.res.once('close', place.leave.bind(place));
      if (!place.isIn) {
        answers.hurry();
        await waitFor(place, ctx, deps.patienceMs ?? patienceMs);
      }
      return place;
    };
    // A connection does not buffer a chunked body, however short it is.
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

/** Ends a request whose body is still incomplete when others could use its memory. */
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

/** Requests share the memory of their account, or without an account that of their network. */
function nameOf(ctx: Context, caller: Account | Token | null): string {
  if (caller && 'accountId' in caller) return `account ${caller.accountId}`;
  const { address } = ctx.state as RequestState;
  return `address ${network(address)}`;
}

/** The number of pairs of account and route that are remembered. */
const maxRemembered = 10_000;
/** An answer may be this many times as large as the ones before. */
const margin = 2;
/** Each later answer keeps this much of the largest size that is still expected. */
const decay = 0.99;

/**
 * Predicts what a request takes from recent answers to the same account and route. Answers that may be large rarely
 * are: if each request reserved the maximum, few could run at once.
 */
type ExpectedBodies = {
  /** In bytes, between `least` and `most`; `most` if nothing is known. */
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
/** Shorter than others wait for memory (`patienceMs`), so that the first of them gets it. */
const stalledMs = 3_000;

/** What a client had taken at the last check, and for how long it has taken nothing since. */
type Seen = { takenBytes: number; stalledMs: number };

/**
 * Answers that occupy memory until their clients have read them. While others wait for memory, an answer of which the
 * client has read nothing for three seconds is cut off, and its connection closed.
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

  /** Starts checking answers, for as long as somebody waits for memory. */
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

/** An answer that is still being created is not stalled: only bytes that its connection could not send count. */
function isStalled({ socket }: ServerResponse, seen: Seen): boolean {
  const waitingBytes = socket?.writableLength ?? 0;
  const takenBytes = (socket?.bytesWritten ?? 0) - waitingBytes;
  const tookSome = waitingBytes === 0 || takenBytes !== seen.takenBytes;
  seen.takenBytes = takenBytes;
  seen.stalledMs = tookSome ? 0 : seen.stalledMs + lookMs;
  return seen.stalledMs >= stalledMs;
}

/**
 * Resolves once a whole body has arrived, without reading it: for a body that the connection buffers. Throws
 * `invalid-input` if the client leaves before that.
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
    // Whoever reads the body finds the request as if nothing had listened to it.
    request.off('readable', onReadable).off('close', onClose);
  }
}
