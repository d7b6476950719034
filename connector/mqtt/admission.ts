import type { Duplex } from 'node:stream';
import type { ConnectionPlace, ConnectionPlaces } from '../../src/lib/connection-places.ts';
import { network } from '../../src/lib/address.ts';
import { type Rate, TokenBucket } from '../../src/lib/token-bucket.ts';
import type { MonotonicClock, MonotonicMs } from '../../src/lib/clock-readings.ts';

type AdmissionOptions = {
  connectsPerSecond: number;
  /** Connections of one address that are being read and are not logged in yet. */
  connectingPerAddress: number;
  /** Further connections of the address that wait unread. */
  waitingPerAddress: number;
  /** Refused logins of one address a second, beyond which its further connections wait. */
  refusedLoginsPerSecond: number;
  /** Waiting connections of all addresses together; one address may have half of them. */
  maxWaiting: number;
  /** The process's connection places, shared with HTTP; null: no bound but the machine's. */
  places: ConnectionPlaces | null;
  now: MonotonicClock;
  onTooMany: () => void;
};

/** What an admitted connection gets. */
export type Admitted = {
  address: string;
  /** The login succeeded, so another connection of the address may be read. Closing the socket has the same effect. */
  letIn(): void;
  /** The login was refused, or the client did something that costs as much as `logins` of these. */
  refused(logins?: number): void;
};

export type Admission = {
  offer(socket: Duplex, address: string, enter: (entry: Admitted) => void): void;
  countWaiting(): number;
  close(): void;
};

type Waiting = {
  socket: Duplex;
  address: string;
  enter: (entry: Admitted) => void;
  /** Null if there is no bound. */
  held: ConnectionPlace | null;
};

/** The state of one address: who waits, and how many connections are being let in. */
type Place = { waiting: Set<Waiting>; connecting: number; refusals: TokenBucket };

/** How many addresses are kept only because of their refused logins. */
const maxIdle = 10_000;

/**
 * Lets new connections in at a bounded rate, and only a few of one address at a time. Connections of one address keep
 * their order, and addresses take turns. Until then nothing is read from them.
 */
export function createAdmission(options: AdmissionOptions): Admission {
  const { connectsPerSecond, refusedLoginsPerSecond, now } = options;
  const rate: Rate = { perSecond: connectsPerSecond, burst: Math.max(1, connectsPerSecond / 10) };
  const refusalRate: Rate = { perSecond: refusedLoginsPerSecond, burst: refusedLoginsPerSecond };
  const bucket = new TokenBucket(rate, now());
  const places = new Map<string, Place>();
  let sweepAt = maxIdle;
  /** Addresses with a waiting connection and room for another one to be read. */
  const ready = new Set<string>();
  let waiting = 0;
  let timer: NodeJS.Timeout | null = null;
  let isClosed = false;

  function placeOf(key: string): Place {
    const known = places.get(key);
    if (known) return known;
    if (places.size >= sweepAt) forgetIdle();
    const place = {
      waiting: new Set<Waiting>(),
      connecting: 0,
      refusals: new TokenBucket(refusalRate, now()),
    };
    places.set(key, place);
    return place;
  }

  function forgetIdle(): void {
    const monotonicMs = now();
    for (const [key, { waiting, connecting, refusals }] of places)
      if (waiting.size + connecting === 0 && refusals.isFull(refusalRate, monotonicMs))
        places.delete(key);
    // If few are idle, the next sweep is far off; otherwise each new address would cause one.
    sweepAt = Math.max(maxIdle, 2 * places.size);
  }

  function offer(socket: Duplex, address: string, enter: (entry: Admitted) => void): void {
    socket.on('error', () => socket.destroy());
    const key = network(address);
    const place = placeOf(key);
    // At most as many as there are places left, so however many wait at some addresses, another address finds a place.
    const most = Math.min(options.waitingPerAddress, options.maxWaiting - waiting);
    const isFull = place.waiting.size >= most;
    // A connection that is not let in yet may be closed for others; one that was let in stays.
    const held =
      isClosed || isFull
        ? null
        : options.places?.enter('mqtt', address, { socket, mayGo: () => true });
    if (isClosed || isFull || held === null) {
      options.onTooMany();
      socket.destroy();
      return;
    }
    const one = { socket, address, enter, held: held ?? null };
    place.waiting.add(one);
    waiting += 1;
    socket.once('close', () => {
      held?.leave();
      if (place.waiting.delete(one)) waiting -= 1;
    });
    if (place.connecting < options.connectingPerAddress) ready.add(key);
    if (!timer) drain();
  }

  /** Admits one connection of each address in turn, until a bound is reached. */
  function drain(): void {
    if (timer) clearTimeout(timer);
    timer = null;
    const monotonicMs = now();
    let isMoving = true;
    while (isMoving && ready.size > 0) {
      isMoving = false;
      let inRound = ready.size;
      for (const key of ready) {
        if (inRound-- === 0) break;
        if (bucket.waitMs(rate, monotonicMs) > 0) return later();
        isMoving = admitNext(key, monotonicMs) || isMoving;
      }
    }
    if (ready.size > 0) later();
  }

  function later(): void {
    timer ??= setTimeout(drain, 5);
  }

  /** Returns whether a connection left the queue. */
  function admitNext(key: string, monotonicMs: MonotonicMs): boolean {
    const place = placeOf(key);
    const [first] = place.waiting;
    if (!first || place.connecting >= options.connectingPerAddress) {
      ready.delete(key);
      return false;
    }
    // Moves to the end: otherwise whoever is in front when the rate is used up would be in front again.
    ready.delete(key);
    ready.add(key);
    if (place.refusals.waitMs(refusalRate, monotonicMs) > 0) return false;
    place.waiting.delete(first);
    waiting -= 1;
    if (first.socket.destroyed) return true;
    bucket.take(1, rate, monotonicMs);
    place.connecting += 1;
    first.enter(entryOf(first, key, place));
    return true;
  }

  function entryOf({ socket, address, held }: Waiting, key: string, place: Place): Admitted {
    let isThrough = false;
    const letIn = () => {
      if (isThrough) return;
      isThrough = true;
      held?.keep();
      socket.off('close', letIn);
      place.connecting -= 1;
      if (place.waiting.size > 0) ready.add(key);
      if (ready.size > 0 && !isClosed) later();
    };
    socket.once('close', letIn);
    return {
      address,
      letIn,
      // Looks the place up again. The address may have been forgotten since, because a connection can be refused
      // something long after it was let in.
      refused: (logins = 1) => placeOf(key).refusals.take(logins, refusalRate, now()),
    };
  }

  return {
    offer,
    countWaiting: () => waiting,
    close(): void {
      isClosed = true;
      if (timer) clearTimeout(timer);
      for (const place of places.values()) for (const { socket } of place.waiting) socket.destroy();
    },
  };
}
