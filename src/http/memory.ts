import type { Context } from 'koa';
import { DomainError } from '../errors.ts';
import type { ByteRoom, Reservation } from '../lib/byte-room.ts';
import { network } from '../lib/network.ts';
import { waitAtMost } from '../lib/wait.ts';
import { hasArrived } from './arrived.ts';
import { expectBody } from './body.ts';
import { createExpectedRoom } from './expected-room.ts';
import type { RequestState } from './request-info.ts';
import type { Account, Token } from './request.ts';
import type { Route } from './route.ts';
import { StalledAnswers } from './stalled-answers.ts';

export type RoomDeps = {
  room: ByteRoom;
  /** A part of it, for those with a larger body: whoever lets these come slowly is in the way of these only. */
  largeRoom: ByteRoom;
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
export type TakeRoom = (
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

export function createTakeRoom(deps: RoomDeps): TakeRoom {
  const { room, largeRoom, isShort, bodyLimitBytes } = deps;
  const expected = createExpectedRoom();
  const answers = new StalledAnswers([room, largeRoom]);
  return async (ctx, route, caller) => {
    if (route.isVital) return noPlace;
    if (isShort()) throw comeLater(ctx, 'The service has little memory left: try again later.');
    const body = route.body ? expectBody(ctx, route, bodyLimitBytes) : 0;
    const name = nameOf(ctx, caller);
    const answer = `${name} ${route.path}`;
    const most = route.room ?? usualBytes;
    const bytes = most > usualBytes ? expected.of(answer, usualBytes, most) : most;
    const enter = async (where: ByteRoom, needed: number) => {
      // It left while it was found out who it is: nothing would tell that its place is free again.
      if (ctx.res.closed) throw comeLater(ctx, 'The client has gone.');
      const place = where.enter(name, needed);
      if (!place) throw comeLater(ctx, 'Too many requests wait already: try again later.');
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
    if (isLarge) await enter(largeRoom, bodyFactor * body);
    else if (body > 0) await hasArrived(ctx.req);
    const place = await enter(room, bytes + bodyFactor * body);
    if (isLarge) hurry(ctx, [largeRoom, room], arrivalMs);
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
function hurry({ req, res }: Context, rooms: ByteRoom[], longestMs: number): void {
  const timer = setInterval(() => {
    if (req.complete) clearInterval(timer);
    else if (rooms.some((room) => room.isWanted)) req.destroy();
  }, longestMs);
  timer.unref();
  res.once('close', () => clearInterval(timer));
}

async function waitFor(place: Reservation, ctx: Context, longestMs: number): Promise<void> {
  const gone = new Promise<void>((resolve) => ctx.res.once('close', resolve));
  await waitAtMost(Promise.race([place.entered, gone]), longestMs);
  if (place.isIn) return;
  place.leave();
  throw comeLater(ctx, 'The service has too much to do at once: try again later.');
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
