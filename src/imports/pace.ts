const fewest = 2_000;
const most = 5_000;
/** A transaction that takes this long makes the next ones smaller: ingest may wait for it. */
const longestMs = 40;

/** How many rows one transaction has: as many as the database stores in a short time. */
export class Pace {
  #rows = fewest;

  get rows(): number {
    return this.#rows;
  }

  took(ms: number, rows: number): void {
    if (ms > longestMs) this.#rows = Math.max(fewest, Math.ceil(this.#rows / 2));
    else if (ms < longestMs / 2 && rows >= this.#rows)
      this.#rows = Math.min(most, Math.ceil(this.#rows * 1.5));
  }
}
