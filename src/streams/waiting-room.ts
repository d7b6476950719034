/** Bytes that may wait to be sent to one reader; readers of the same event share its bytes. */
const maxOfOne = 1_048_576;
/** Always: a reader that keeps up has less. */
const leastOfOne = 65_536;
/** Of what is left of all. */
const part = 1 / 16;

/**
 * What waits to be sent to readers of all streams. The fuller it is, the less may wait for one: however many accounts
 * open streams and read little, whoever keeps up goes on.
 */
export class WaitingRoom {
  bytes = 0;
  readonly #maxBytes: number;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes that may wait for one reader now. */
  mostOfOne(): number {
    return Math.max(leastOfOne, Math.min(maxOfOne, part * (this.#maxBytes - this.bytes)));
  }
}
