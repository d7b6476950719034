const nothing = Buffer.alloc(0);

/**
 * Puts the parts of a packet together until it is whole. Parsers that keep a list of parts look for each byte
 * from the front of the list: a packet that comes byte by byte would take the square of its length.
 */
export class PacketBuffer {
  #bytes = nothing;
  #length = 0;

  /**
   * What is whole with `chunk`, in one piece; null: nothing yet. `begunBytes`: how many of the bytes so far
   * belong to a packet that has not ended; `wholeBytes`: how many it will have, once that is known.
   */
  take(chunk: Buffer, begunBytes: number, wholeBytes: number): Buffer | null {
    const length = this.#length + chunk.length;
    if (this.#length === 0 && begunBytes === 0) return chunk;
    if (begunBytes === length) {
      this.#append(chunk, wholeBytes);
      return null;
    }
    const all =
      this.#length === 0 ? chunk : Buffer.concat([this.#bytes.subarray(0, this.#length), chunk]);
    this.#bytes = nothing;
    this.#length = 0;
    if (begunBytes > 0) this.#append(all.subarray(length - begunBytes), wholeBytes);
    return all.subarray(0, length - begunBytes);
  }

  #append(chunk: Buffer, wholeBytes: number): void {
    const length = this.#length + chunk.length;
    if (length > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(
        Math.max(length, Math.min(2 * this.#bytes.length, wholeBytes)),
      );
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    chunk.copy(this.#bytes, this.#length);
    this.#length = length;
  }
}
