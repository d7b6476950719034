/** PostgreSQL counts from 2000-01-01. */
// oxlint-disable-next-line no-restricted-globals -- a given time
const epochMs = Date.UTC(2000, 0, 1);
const signature = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');
const none = 0xffff;
/** A field with its length in front. All types written here have eight bytes. */
const fieldBytes = 12;

/** Rows in PostgreSQL's binary format, which need no conversion to and from text. */
export class CopyRows {
  #bytes = Buffer.allocUnsafe(8_192);
  #at = signature.copy(this.#bytes);

  /** Begins the next row, and reserves space for this many fields. */
  row(fields: number): this {
    this.#reserve(2 + fields * fieldBytes);
    this.#at = this.#bytes.writeUInt16BE(fields, this.#at);
    return this;
  }

  bigint(value: number): this {
    const at = this.#bytes.writeInt32BE(8, this.#at);
    const high = Math.floor(value / 2 ** 32);
    this.#bytes.writeInt32BE(high, at);
    this.#at = this.#bytes.writeUInt32BE(value - high * 2 ** 32, at + 4);
    return this;
  }

  /** A point in time, in milliseconds. */
  timestamptz(ts: number): this {
    return this.bigint((ts - epochMs) * 1_000);
  }

  float8(value: number): this {
    const at = this.#bytes.writeInt32BE(8, this.#at);
    this.#at = this.#bytes.writeDoubleBE(value, at);
    return this;
  }

  /** Returns all rows. Nothing can be added afterwards. */
  end(): Buffer {
    this.#reserve(2);
    const end = this.#bytes.writeUInt16BE(none, this.#at);
    return this.#bytes.subarray(0, end);
  }

  #reserve(count: number): void {
    if (this.#at + count <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(2 * this.#bytes.length + count);
    this.#bytes.copy(larger, 0, 0, this.#at);
    this.#bytes = larger;
  }
}
