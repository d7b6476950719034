import { setTimeout as delay } from 'node:timers/promises';
import type { Sql } from '../db/sql.ts';
import type { MonotonicClock } from '../lib/clock.ts';
import { WakeableRest } from '../lib/wakeable-rest.ts';
import { catchUpEvents } from './catch-up.ts';
import type { WaitingRoom } from '../streams/waiting-room.ts';
import { Member } from '../streams/subscriber.ts';
import type { StreamPosition } from '../streams/position.ts';
import { readPosition } from '../streams/read-position.ts';
import type { TakeTurn } from '../streams/slices.ts';
import type { Audience } from './audience.ts';
import { writeBeat, writePage, type EventPiece } from './write-page.ts';

export type FollowerOptions = {
  db: Sql;
  accountId: number;
  /** No stream is silent for longer, and the database is asked twice as often unasked. */
  heartbeatMs: number;
  takeTurn: TakeTurn;
  monotonicClock: MonotonicClock;
  /** Of all streams. */
  room: WaitingRoom;
  /** The last stream has left. */
  onEnd: () => void;
};

/** However many commits there are, the database is asked ten times a second at most. */
const pauseMs = 100;
/** Writes to an account's streams, at most; with many streams the writes are fewer and larger. */
const writesPerMs = 2;
/** Streams that are written to before the event loop does other work: 2 to 3 ms. */
const writesPerTurn = 32;

export type EventMember = Member<StreamPosition>;

type Joining = { audience: Audience } & PromiseWithResolvers<EventMember>;

/** The streams that are sent the same. */
type Group = { audience: Audience; members: Set<EventMember> };

/**
 * Follows what is committed for one account, for all its streams together: the database is read once,
 * and an event is written once, however many streams there are.
 */
export class Follower {
  readonly #options: FollowerOptions;
  readonly #groups = new Map<string, Group>();
  #joining: Joining[] = [];
  #position: StreamPosition | undefined;
  #beatMs: number;
  readonly #rest = new WakeableRest();

  constructor(options: FollowerOptions) {
    this.#options = options;
    this.#beatMs = options.monotonicClock();
    void this.#run();
  }

  /** A stream of the account, or of some of its devices: it is given what is committed from now on. */
  join(audience: Audience): Promise<EventMember> {
    const joining = { audience, ...Promise.withResolvers<EventMember>() };
    this.#joining.push(joining);
    this.wake();
    return joining.promise;
  }

  leave(member: EventMember): void {
    member.leave();
    this.#forget(member);
    if (this.#count() === 0) this.wake();
  }

  /** Something was committed, or may have been. */
  wake(): void {
    this.#rest.wake();
  }

  async #run(): Promise<void> {
    try {
      // The first stream joins in the same turn of the event loop.
      await Promise.resolve();
      while (this.#count() + this.#joining.length > 0) {
        this.#rest.begin();
        await this.#round();
        await delay(Math.max(pauseMs, this.#count() / writesPerMs));
        await this.#rest.rest(this.#restMs());
      }
      this.#options.onEnd();
    } catch (cause) {
      this.#options.onEnd();
      for (const { reject } of this.#joining) reject(cause);
      const error = cause instanceof Error ? cause : new Error('A stream broke off.', { cause });
      for (const member of this.#all()) member.end(error);
    }
  }

  async #round(): Promise<void> {
    const { db, accountId, monotonicClock } = this.#options;
    // Taken before the query: these streams must miss nothing that is committed after they joined.
    const joining = this.#joining.splice(0);
    try {
      const to = await readPosition(db);
      if (this.#position) await this.#advance(accountId, this.#position, to);
      this.#position = to;
      await this.#beat(to);
      const nowMs = monotonicClock();
      for (const { audience, resolve } of joining)
        resolve(this.#add(audience, new Member(to, nowMs, this.#options.room)));
    } catch (error) {
      for (const { reject } of joining) reject(error);
      throw error;
    }
  }

  async #advance(accountId: number, from: StreamPosition, to: StreamPosition): Promise<void> {
    const { db, takeTurn } = this.#options;
    if (this.#count() === 0) return;
    for await (const page of catchUpEvents(db, { accountId, deviceId: null }, from, to)) {
      const devices = new Set(page.events.map(({ row }) => row.deviceId));
      for (const { audience, members } of this.#groups.values()) {
        if (audience.deviceId !== null && !devices.has(audience.deviceId)) continue;
        await takeTurn();
        for (const piece of writePage(page, audience)) await this.#give(members, piece);
      }
    }
    for (const member of this.#all()) member.position = to;
  }

  async #give(members: Iterable<EventMember>, piece: EventPiece): Promise<void> {
    const nowMs = this.#options.monotonicClock();
    let given = 0;
    for (const member of members) {
      if (given % writesPerTurn === 0) await this.#options.takeTurn();
      given += 1;
      member.give(piece, nowMs);
      if (member.hasEnded) this.#forget(member);
    }
  }

  /** Twice in `heartbeatMs`: streams that were sent something since the last time are left out. */
  async #beat(position: StreamPosition): Promise<void> {
    const everyMs = this.#options.heartbeatMs / 2;
    const nowMs = this.#options.monotonicClock();
    if (nowMs - this.#beatMs < everyMs) return;
    this.#beatMs = nowMs;
    for (const hasIds of [true, false]) {
      const groups = [...this.#groups.values()].filter(
        ({ audience }) => audience.hasIds === hasIds,
      );
      const members = groups.flatMap((group) => [...group.members]);
      const silent = members.filter(({ givenMs }) => nowMs - givenMs >= everyMs);
      if (silent.length > 0) await this.#give(silent, writeBeat(position, hasIds));
    }
  }

  /** Until it is time for a heart-beat. */
  #restMs(): number {
    const { heartbeatMs, monotonicClock } = this.#options;
    return this.#beatMs + heartbeatMs / 2 - monotonicClock();
  }

  #add(audience: Audience, member: EventMember): EventMember {
    const group = this.#groups.get(audience.key) ?? { audience, members: new Set() };
    group.members.add(member);
    this.#groups.set(audience.key, group);
    return member;
  }

  #forget(member: EventMember): void {
    for (const [key, { members }] of this.#groups)
      if (members.delete(member) && members.size === 0) this.#groups.delete(key);
  }

  #count(): number {
    let count = 0;
    for (const { members } of this.#groups.values()) count += members.size;
    return count;
  }

  *#all(): Generator<EventMember> {
    for (const { members } of this.#groups.values()) yield* members;
  }
}
