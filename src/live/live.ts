import { setTimeout as delay } from 'node:timers/promises';
import type { LiveDevice } from '../bus/bus.ts';
import type { MonotonicClock } from '../lib/clock.ts';
import { WakeableRest } from '../lib/wakeable-rest.ts';
import type { StreamPosition } from '../streams/position.ts';
import { stillHere } from '../streams/server-sent.ts';
import type { TakeTurn } from '../streams/slices.ts';
import { type DropReason, Member } from '../streams/subscriber.ts';
import type { WaitingRoom } from '../streams/waiting-room.ts';
import { Backlog } from './backlog.ts';
import { Group, type LiveFilter } from './group.ts';
import type { Positions, ReadPosition } from './positions.ts';
import type { Value } from './value.ts';

export type BoardOptions = {
  positions: Positions;
  takeTurn: TakeTurn;
  monotonicClock: MonotonicClock;
  /** Of all streams. */
  room: WaitingRoom;
  /** No stream is silent for longer. */
  heartbeatMs: number;
  /** Values that wait in this process. */
  waiting: { values: number };
  /** The last stream has left. */
  onEnd: () => void;
};

export type Joined = {
  member: Member<string>;
  /** What was committed when it joined. */
  position: StreamPosition;
  leave: () => void;
};

/** Values that are handled before the event loop does other work: about a millisecond for each group. */
const valuesPerTurn = 500;
/** Between two writes to the streams of an account, at least; with many streams the writes are fewer. */
const pauseMs = 5;
const streamsPerPauseMs = 4;

/** Gives the values of one account to its streams. */
export class Board {
  readonly #options: BoardOptions;
  readonly #groups = new Map<string, Group>();
  readonly #backlog: Backlog;
  /** Streams that are about to join. */
  #joining = 0;
  #isRunning = false;
  #hasEnded = false;
  #beatMs: number;
  readonly #rest = new WakeableRest();

  constructor(options: BoardOptions) {
    this.#options = options;
    this.#backlog = new Backlog(options.waiting);
    this.#beatMs = options.monotonicClock();
  }

  /**
   * A stream that is given what is heard from now on, once it is known what is committed: what comes between
   * the two comes twice.
   */
  async join(filter: LiveFilter, read: Promise<ReadPosition>): Promise<Joined> {
    this.#joining += 1;
    try {
      const first = await read;
      const group = this.#groupOf(filter, first);
      const member = new Member<string>('', this.#options.monotonicClock(), this.#options.room);
      group.members.add(member);
      if (!this.#isRunning) void this.#run();
      return { member, position: first.position, leave: () => this.#leave(group, member) };
    } finally {
      this.#joining -= 1;
      this.#endUnlessUsed();
    }
  }

  /** Values that were committed, in the order in which they were. */
  hear(devices: LiveDevice[]): void {
    const isRoom = this.#backlog.add(devices, this.#options.monotonicClock());
    if (isRoom) this.#rest.wake();
    else this.drop('overloaded');
  }

  /** Ends all streams: each resumes where it was. */
  drop(reason: DropReason): void {
    this.#backlog.clear();
    for (const { members } of this.#groups.values())
      for (const member of members) member.drop(reason);
  }

  #groupOf(filter: LiveFilter, first: ReadPosition): Group {
    const key = JSON.stringify([filter.reach.key, filter.senses?.toSorted(), filter.maxHz]);
    const group = this.#groups.get(key) ?? new Group(key, filter, this.#options.positions, first);
    this.#groups.set(key, group);
    return group;
  }

  #leave(group: Group, member: Member<string>): void {
    member.leave();
    if (!group.members.delete(member) || group.members.size > 0) return;
    if (this.#groups.get(group.key) === group) this.#groups.delete(group.key);
    this.#endUnlessUsed();
  }

  #endUnlessUsed(): void {
    if (this.#groups.size > 0 || this.#joining > 0 || this.#hasEnded) return;
    this.#hasEnded = true;
    this.#backlog.clear();
    this.#options.onEnd();
    this.#rest.wake();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    try {
      await this.#serveAll();
    } catch (cause) {
      const error = cause instanceof Error ? cause : new Error('A stream broke off.', { cause });
      for (const { members } of this.#groups.values())
        for (const member of members) member.end(error);
    } finally {
      this.#isRunning = false;
    }
  }

  async #serveAll(): Promise<void> {
    const { monotonicClock } = this.#options;
    while (this.#groups.size > 0) {
      this.#rest.begin();
      const heardMs = this.#backlog.oldestMs ?? monotonicClock();
      const values = this.#backlog.take(valuesPerTurn);
      for (const group of this.#groups.values()) await this.#serve(group, values, heardMs);
      await this.#beat();
      if (!this.#backlog.isEmpty) continue;
      await delay(pauseMs + this.#count() / streamsPerPauseMs);
      if (this.#groups.size > 0) await this.#rest.rest(this.#restMs());
    }
  }

  async #serve(group: Group, values: Value[], heardMs: number): Promise<void> {
    const { takeTurn, monotonicClock } = this.#options;
    const nowMs = monotonicClock();
    let next = group.throttle?.takeDue(nowMs, valuesPerTurn) ?? [];
    do {
      if (next.length > 0) await this.#give(group, next, heardMs);
      next = group.throttle?.takeDue(nowMs, valuesPerTurn) ?? [];
    } while (next.length > 0);
    if (values.length === 0) return;
    await takeTurn();
    const chosen = group.choose(values, nowMs);
    if (chosen.length > 0) await this.#give(group, chosen, heardMs);
  }

  async #give(group: Group, values: Value[], heardMs: number): Promise<void> {
    await this.#options.takeTurn();
    const nowMs = this.#options.monotonicClock();
    for (const piece of group.write(values, heardMs, nowMs))
      for (const member of group.members) member.give(piece, nowMs);
  }

  /** Twice in `heartbeatMs`, to streams that were sent nothing since. */
  async #beat(): Promise<void> {
    const everyMs = this.#options.heartbeatMs / 2;
    const nowMs = this.#options.monotonicClock();
    if (nowMs - this.#beatMs < everyMs) return;
    this.#beatMs = nowMs;
    await this.#options.takeTurn();
    for (const group of this.#groups.values()) {
      const piece = { bytes: Buffer.from(stillHere), position: group.position(nowMs) };
      for (const member of group.members)
        if (nowMs - member.givenMs >= everyMs) member.give(piece, nowMs);
    }
  }

  /** Until a value is due or it is time for a heart-beat. */
  #restMs(): number {
    const dueMs = [...this.#groups.values()].map(({ throttle }) => throttle?.nextMs ?? Infinity);
    const nextMs = Math.min(this.#beatMs + this.#options.heartbeatMs / 2, ...dueMs);
    return nextMs - this.#options.monotonicClock();
  }

  #count(): number {
    let count = 0;
    for (const { members } of this.#groups.values()) count += members.size;
    return count;
  }
}
