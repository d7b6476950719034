/**
 * Joins the chunks of a body as they come. A client may send them of one byte each, and a Buffer for each of those takes
 * 100 times as much memory as what is in it.
 */
export class JoinedChunks {
  readonly #most: number;
  #bytes: Buffer = nothing;
  #length = 0;

  /** `most`: bytes that they may have together. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Whether these fit as well. */
  hasRoom(chunk: Buffer): boolean {
    return this.#length + chunk.length <= this.#most;
  }

  /** Gives by how many bytes its memory grew. Adds only what has room. */
  add(chunk: Buffer): number {
    const length = this.#length + chunk.length;
    const before = this.#bytes.length;
    // One that comes in one piece is not copied.
    if (before === 0) this.#bytes = chunk;
    else if (length > before) {
      const larger = Buffer.allocUnsafe(
        Math.min(Math.max(length, 2 * before, leastBytes), this.#most),
      );
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    if (before > 0) chunk.copy(this.#bytes, this.#length);
    this.#length = length;
    return this.#bytes.length - before;
  }

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  clear(): void {
    this.#bytes = nothing;
    this.#length = 0;
  }
}

const nothing = Buffer.alloc(0);
/** Of the memory that is made for a body of several chunks. */
const leastBytes = 1_024;
