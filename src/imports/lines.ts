/** A line without its end; `text` is null where it is longer than a line may be. */
export type Line = { number: number; text: string | null };

/** A line longer than this is no measurement, and is not kept in memory. */
const maxLineBytes = 16_384;

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);
const nothing = Buffer.alloc(0);

/**
 * Makes lines of the pieces in which a text comes. Lines are counted from 1, and end with LF or CRLF. Empty ones are
 * counted and not given, but for the first: a body of nothing else would cost a thousand times what its gzip weighs.
 */
export class Lines {
  #rest: Buffer = nothing;
  #number = 0;
  /** The line under way is too long: what comes of it is dropped. */
  #isSkipping = false;

  /** The lines that end within this piece. To be read to the end before the next piece comes. */
  *take(piece: Buffer): Generator<Line> {
    let from = 0;
    for (;;) {
      from = this.#skipEmpty(piece, from);
      const end = piece.indexOf(lineFeed, from);
      if (end === -1) break;
      yield this.#close(piece.subarray(from, end));
      from = end + 1;
    }
    this.#keep(piece.subarray(from));
  }

  /** What stands behind the last line end, if anything does. */
  *end(): Generator<Line> {
    if (this.#rest.length > 0 || this.#isSkipping) yield this.#close(nothing);
  }

  /** Where the next line begins that is not empty. A loop of our own: `indexOf` costs several times as much a line. */
  #skipEmpty(piece: Buffer, from: number): number {
    if (this.#number === 0 || this.#rest.length > 0 || this.#isSkipping) return from;
    let at = from;
    for (;;) {
      const end = piece[at] === carriageReturn ? at + 1 : at;
      if (piece[end] !== lineFeed) return at;
      this.#number += 1;
      at = end + 1;
    }
  }

  #close(tail: Buffer): Line {
    this.#number += 1;
    const isTooLong = this.#isSkipping || this.#rest.length + tail.length > maxLineBytes;
    const bytes = this.#rest.length > 0 && !isTooLong ? Buffer.concat([this.#rest, tail]) : tail;
    this.#rest = nothing;
    this.#isSkipping = false;
    return { number: this.#number, text: isTooLong ? null : textOf(bytes, this.#number === 1) };
  }

  #keep(tail: Buffer): void {
    if (tail.length === 0 || this.#isSkipping) return;
    if (this.#rest.length + tail.length > maxLineBytes) {
      this.#rest = nothing;
      this.#isSkipping = true;
      return;
    }
    // A copy: the piece is much larger, and would stay with it.
    this.#rest = Buffer.concat([this.#rest, tail]);
  }
}

function textOf(bytes: Buffer, isFirst: boolean): string {
  const hasMark = isFirst && bytes.subarray(0, byteOrderMark.length).equals(byteOrderMark);
  const start = hasMark ? byteOrderMark.length : 0;
  const end = bytes.at(-1) === carriageReturn ? bytes.length - 1 : bytes.length;
  return bytes.toString('utf8', start, end);
}
