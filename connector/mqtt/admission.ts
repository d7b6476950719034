import type { Duplex } from 'node:stream';
import type { ConnectionPlace, ConnectionPlaces } from '../../src/lib/connection-places.ts';
import { network } from '../../src/lib/address.ts';
import { Bucket, type Rate } from '../device/rates.ts';
import type { MonotonicClock, MonotonicMs } from '../../src/lib/clock-readings.ts';

type AdmissionOptions = {
  connectsPerSecond: number;
  /** Connections of one address that are read and not let in yet. */
  connectingPerAddress: number;
  /** Further ones of it that wait for their turn, unread. */
  waitingPerAddress: number;
  /** Refused logins of one address, after which further ones of its connections wait. */
  refusedLoginsPerSecond: number;
  /** Connections of all addresses that wait; one address has half of it at most. */
  maxWaiting: number;
  /** The places of the process, of which HTTP has others; null: as many as the machine has. */
  places: ConnectionPlaces | null;
  now: MonotonicClock;
  onTooMany: () => void;
};

/** What a connection was let through with. */
export type Admitted = {
  address: string;
  /** It is let in: another one of its address may be read. Its end means the same. */
  letIn(): void;
  /** Its login was refused, or it did what costs as much as so many of these. */
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
  /** Null where there is no bound. */
  held: ConnectionPlace | null;
};

/** What is known of an address: who waits, and how many are being let in. */
type Place = { waiting: Set<Waiting>; connecting: number; refusals: Bucket };

/** Addresses that are remembered for their refused logins only. */
const maxIdle = 10_000;

/**
 * Lets new connections in at a bounded rate and few of an address at a time: each in the order of its
 * address, the addresses in turn. Until then none is read.
 */
export function createAdmission(options: AdmissionOptions): Admission {
  const { connectsPerSecond, refusedLoginsPerSecond, now } = options;
  const rate: Rate = { perSecond: connectsPerSecond, burst: Math.max(1, connectsPerSecond / 10) };
  const refusalRate: Rate = { perSecond: refusedLoginsPerSecond, burst: refusedLoginsPerSecond };
  const bucket = new Bucket(rate, now());
  const places = new Map<string, Place>();
  let sweepAt = maxIdle;
  /** Addresses with somebody who waits, and room for another one to be read. */
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
      refusals: new Bucket(refusalRate, now()),
    };
    places.set(key, place);
    return place;
  }

  function forgetIdle(): void {
    const monotonicMs = now();
    for (const [key, { waiting, connecting, refusals }] of places)
      if (waiting.size + connecting === 0 && refusals.isFull(refusalRate, monotonicMs))
        places.delete(key);
    // Where few are idle the next look is far off: else each new address would take one.
    sweepAt = Math.max(maxIdle, 2 * places.size);
  }

  function offer(socket: Duplex, address: string, enter: (entry: Admitted) => void): void {
    socket.on('error', () => socket.destroy());
    const key = network(address);
    const place = placeOf(key);
    // As many as there are places left: however many wait at some addresses, another one finds a place.
    const most = Math.min(options.waitingPerAddress, options.maxWaiting - waiting);
    const isFull = place.waiting.size >= most;
    // Whoever is not let in yet makes way for others; a device that was let in stays.
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

  /** Each address has one turn after the other, until a bound is met. */
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

  /** Says whether a connection was let through. */
  function admitNext(key: string, monotonicMs: MonotonicMs): boolean {
    const place = placeOf(key);
    const [first] = place.waiting;
    if (!first || place.connecting >= options.connectingPerAddress) {
      ready.delete(key);
      return false;
    }
    // Last of all now: whoever is in front when the rate is used up would be in front again.
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
      // Of an address that was forgotten meanwhile too: one that was let in long ago may be refused something.
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
