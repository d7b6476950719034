import type { StreamPosition } from './position.ts';

/** Bytes that may wait to be sent to one reader; readers of the same event share its bytes. */
const maxWaitingBytes = 1_048_576;

/** One stream of those that follow an account: what is to be sent to it, until it ends or falls behind. */
export class Member {
  /** Null: all devices of the account. */
  readonly deviceId: number | null;
  /** All that it was given comes before this; a stream that falls behind resumes here. */
  position: StreamPosition;
  /** When it was given something last, of the follower's clock. */
  givenMs: number;
  hasEnded = false;
  #error: Error | undefined;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #wake: (() => void) | undefined;

  constructor(deviceId: number | null, position: StreamPosition, nowMs: number) {
    this.deviceId = deviceId;
    this.position = position;
    this.givenMs = nowMs;
  }

  /** Queues a chunk; where too much waits already the stream ends, and what waits can still be read. */
  give(chunk: Buffer, nowMs: number): void {
    if (this.hasEnded) return;
    if (this.#waiting.length > 0 && this.#waitingBytes + chunk.length > maxWaitingBytes) {
      this.end();
      return;
    }
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.length;
    this.givenMs = nowMs;
    this.#wake?.();
  }

  /** Nothing more will come; with an error `read` throws it. */
  end(error?: Error): void {
    this.hasEnded = true;
    this.#error ??= error;
    this.#wake?.();
  }

  /** What it is given, as it comes, until it has ended. */
  async *read(): AsyncGenerator<Buffer> {
    for (;;) {
      const chunk = this.#waiting.shift();
      if (chunk) {
        this.#waitingBytes -= chunk.length;
        yield chunk;
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
}
