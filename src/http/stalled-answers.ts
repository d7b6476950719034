import type { ServerResponse } from 'node:http';
import type { ByteRoom } from '../lib/byte-room.ts';

const lookMs = 1_000;
/** Shorter than others wait for room, so that the first of them has it. */
const stalledMs = 3_000;

/** What a client had taken when it was looked at, and how often it took nothing since. */
type Seen = { takenBytes: number; stalledMs: number };

/**
 * Answers that take room until their clients have taken them. While others wait for that room, an answer of which
 * nothing was taken for three seconds is broken off, and its connection closed.
 */
export class StalledAnswers {
  readonly #rooms: readonly Pick<ByteRoom, 'isWanted'>[];
  readonly #open = new Map<ServerResponse, Seen>();
  #timer: NodeJS.Timeout | undefined;

  constructor(rooms: readonly Pick<ByteRoom, 'isWanted'>[]) {
    this.#rooms = rooms;
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
    if (this.#rooms.some((room) => room.isWanted)) {
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
