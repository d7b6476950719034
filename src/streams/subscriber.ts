import type { StreamPiece } from './server-sent.ts';
import type { WaitingRoom } from './waiting-room.ts';

/**
 * `slow-reader`: more waited for it than may. `overloaded`: its account's values come faster than they can be
 * sent. `interrupted`: other processes could not be heard for a moment.
 */
export type DropReason = 'slow-reader' | 'overloaded' | 'interrupted';

/** One stream of those that follow an account: what is to be sent to it, until it ends or falls behind. */
export class Member<P> {
  /** All that it was given comes before this; a stream that falls behind resumes here. */
  position: P;
  /** When it was given something last, of the follower's clock. */
  givenMs: number;
  hasEnded = false;
  /** Why it was ended before its reader left; null where it was not. */
  reason: DropReason | null = null;
  #error: Error | undefined;
  #waiting: StreamPiece<P>[] = [];
  #waitingBytes = 0;
  #wake: (() => void) | undefined;
  readonly #room: WaitingRoom;

  constructor(position: P, nowMs: number, room: WaitingRoom) {
    this.position = position;
    this.givenMs = nowMs;
    this.#room = room;
  }

  /** Queues a piece; where too much waits already the stream ends, and what waits can still be read. */
  give(piece: StreamPiece<P>, nowMs: number): void {
    if (this.hasEnded) return;
    const { length } = piece.bytes;
    if (this.#waiting.length > 0 && this.#waitingBytes + length > this.#room.mostOfOne()) {
      this.drop('slow-reader');
      return;
    }
    this.#waiting.push(piece);
    this.#count(length);
    this.givenMs = nowMs;
    this.#wake?.();
  }

  /** Ends it; what waits can still be read. */
  drop(reason: DropReason): void {
    this.reason ??= reason;
    this.end();
  }

  /** Its reader has gone: what waits is sent to nobody. */
  leave(): void {
    this.end();
    this.#waiting = [];
    this.#count(-this.#waitingBytes);
  }

  /** Nothing more will come; with an error `read` throws it. */
  end(error?: Error): void {
    this.hasEnded = true;
    this.#error ??= error;
    this.#wake?.();
  }

  /** What it is given, as it comes, until it has ended. */
  async *read(): AsyncGenerator<StreamPiece<P>> {
    for (;;) {
      const piece = this.#waiting.shift();
      if (piece) {
        this.#count(-piece.bytes.length);
        yield piece;
        continue;
      }
      if (this.#error) throw this.#error;
      if (this.hasEnded) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
      this.#wake = undefined;
    }
  }

  #count(bytes: number): void {
    this.#waitingBytes += bytes;
    this.#room.bytes += bytes;
  }
}
