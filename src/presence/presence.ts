import type { PresentDevice } from '../bus/bus.ts';
import type { MonotonicClock } from '../lib/clock.ts';
import type { Reach } from '../streams/reach.ts';
import { stillHere } from '../streams/server-sent.ts';
import { Member } from '../streams/subscriber.ts';
import type { WaitingRoom } from '../streams/waiting-room.ts';
import { PresenceChanges } from './changes.ts';
import { position, type WriteTurn } from './write-turn.ts';

type BoardOptions = {
  monotonicClock: MonotonicClock;
  /** Of all streams. */
  room: WaitingRoom;
  /** No stream is silent for longer. */
  heartbeatMs: number;
  write: WriteTurn;
  /** The last stream has left. */
  onEnd: () => void;
};

type Joined = { member: Member<string>; leave: () => void };

/** Between two turns. After one that told to ask again there is more time: answers cost more than turns. */
const pauseMs = 1_000;
const pauseAfterAllMs = 2_000;

/** Tells the streams of one account who connected and left: at once after a pause, and then in turns. */
export class PresenceBoard {
  readonly #options: BoardOptions;
  readonly #members = new Map<Member<string>, Reach>();
  readonly #changes = new PresenceChanges();
  readonly #beating: NodeJS.Timeout;
  #timer: NodeJS.Timeout | undefined;
  #nextMs = -Infinity;

  constructor(options: BoardOptions) {
    this.#options = options;
    this.#beating = setInterval(() => this.#beat(), options.heartbeatMs / 2);
    this.#beating.unref();
  }

  join(reach: Reach): Joined {
    const member = new Member(position, this.#options.monotonicClock(), this.#options.room);
    this.#members.set(member, reach);
    return { member, leave: () => this.#leave(member) };
  }

  /** Null: any may have changed. */
  hear(devices: readonly PresentDevice[] | null): void {
    if (devices) this.#changes.add(devices);
    else this.#changes.addAll('many');
    this.#schedule();
  }

  /** Devices were added, removed, labelled or configured anew. */
  change(): void {
    this.#changes.addAll('changed');
    this.#schedule();
  }

  /** Something may not have been heard. */
  miss(): void {
    this.#changes.addAll('missed');
    this.#schedule();
  }

  #schedule(): void {
    if (this.#timer || this.#members.size === 0) return;
    const waitMs = Math.max(0, this.#nextMs - this.#options.monotonicClock());
    this.#timer = setTimeout(() => this.#tell(), waitMs);
  }

  #tell(): void {
    this.#timer = undefined;
    const nowMs = this.#options.monotonicClock();
    const turn = this.#changes.take();
    this.#nextMs = nowMs + ('devices' in turn ? pauseMs : pauseAfterAllMs);
    const written = new Map<string, Buffer>();
    for (const [member, reach] of this.#members) {
      const bytes = written.get(reach.key) ?? this.#options.write(turn, reach);
      written.set(reach.key, bytes);
      if (bytes.length > 0) member.give({ bytes, position }, nowMs);
    }
  }

  #beat(): void {
    const nowMs = this.#options.monotonicClock();
    const piece = { bytes: Buffer.from(stillHere), position };
    for (const member of this.#members.keys())
      if (nowMs - member.givenMs >= this.#options.heartbeatMs / 2) member.give(piece, nowMs);
  }

  #leave(member: Member<string>): void {
    member.leave();
    if (!this.#members.delete(member) || this.#members.size > 0) return;
    clearInterval(this.#beating);
    clearTimeout(this.#timer);
    this.#options.onEnd();
  }
}
