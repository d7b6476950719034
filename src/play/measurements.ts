/*
 * Stored measurements as columns: a year of them is played in about as long as making objects of it would take.
 */

const stamped = 1;
const known = 2;
const firstRows = 4_096;

/** Measurements of one device, in the order in which they were evaluated once they are sorted. */
export class Measurements {
  /** The senses that `sense` counts. */
  senses: readonly string[] = [];
  count = 0;
  /** Whether it is known of all when they arrived. */
  areKnown = true;
  #isSorted = true;
  /** When each arrived, ms, and its place among the device's inputs of that arrival. */
  #arrived = new Float64Array(firstRows);
  #place = new Uint16Array(firstRows);
  /** Its own time, in microseconds. */
  #at = new Float64Array(firstRows);
  #sense = new Uint16Array(firstRows);
  /** A position has its latitude in `val`; a number has NaN in `long`. */
  #val = new Float64Array(firstRows);
  #long = new Float64Array(firstRows);
  #flags = new Uint8Array(firstRows);

  /** Begins anew, with the memory that it has. */
  clear(senses: readonly string[]): void {
    this.senses = senses;
    this.count = 0;
    this.areKnown = true;
    this.#isSorted = true;
  }

  /** Adds a row as it is stored, with NaN for NULL. `at` in microseconds. */
  add(sense: number, at: number, val: number, long: number, arrived: number, nth: number): void {
    const n = this.count;
    if (n === this.#arrived.length) this.#grow();
    const isKnown = arrived === arrived;
    this.#arrived[n] = isKnown ? arrived : Math.floor(at / 1_000);
    this.#place[n] = nth < 0 ? -1 - nth : nth;
    this.#at[n] = at;
    this.#sense[n] = sense;
    this.#val[n] = val;
    this.#long[n] = long;
    this.#flags[n] = (nth < 0 ? stamped : 0) | (isKnown ? known : 0);
    if (!isKnown) this.areKnown = false;
    if (n > 0 && this.#compare(n - 1, n) > 0) this.#isSorted = false;
    this.count = n + 1;
  }

  /** Sorts what was added. */
  sort(): void {
    if (this.#isSorted) return;
    // An ordinary array, because its sort makes use of what is in order already: each sense is, nearly.
    const order = Array.from({ length: this.count }, (_, n) => n);
    order.sort((one, other) => this.#compare(one, other));
    this.#arrived = inOrder(this.#arrived, order);
    this.#place = inOrder(this.#place, order);
    this.#at = inOrder(this.#at, order);
    this.#sense = inOrder(this.#sense, order);
    this.#val = inOrder(this.#val, order);
    this.#long = inOrder(this.#long, order);
    this.#flags = inOrder(this.#flags, order);
    this.#isSorted = true;
  }

  arrivedOf(n: number): number {
    return this.#arrived[n] as number;
  }

  senseOf(n: number): string {
    return this.senses[this.#sense[n] as number] as string;
  }

  tsOf(n: number): number {
    return Math.floor((this.#at[n] as number) / 1_000);
  }

  valOf(n: number): number | { lat: number; long: number } {
    const [val, long] = [this.#val[n] as number, this.#long[n] as number];
    return long === long ? { lat: val, long } : val;
  }

  isStamped(n: number): boolean {
    return ((this.#flags[n] as number) & stamped) !== 0;
  }

  /** The first from `from` on that does not come before that place of that arrival. */
  endBefore(from: number, arrived: number, place: number): number {
    let end = from;
    while (end < this.count && this.#isBefore(end, arrived, place)) end += 1;
    return end;
  }

  /** The end of about `most` rows from `from` on, with all of the last one's arrival. */
  endOf(from: number, most: number): number {
    let end = Math.min(this.count, from + most);
    while (end < this.count && this.#arrived[end] === this.#arrived[end - 1]) end += 1;
    return end;
  }

  #isBefore(n: number, arrived: number, place: number): boolean {
    const own = this.#arrived[n] as number;
    return own < arrived || (own === arrived && (this.#place[n] as number) < place);
  }

  /** Imported values of one moment have no order: any will do that is always the same. */
  #compare(one: number, other: number): number {
    return (
      (this.#arrived[one] as number) - (this.#arrived[other] as number) ||
      (this.#place[one] as number) - (this.#place[other] as number) ||
      (this.#at[one] as number) - (this.#at[other] as number) ||
      (this.#sense[one] as number) - (this.#sense[other] as number)
    );
  }

  #grow(): void {
    const rows = 2 * this.#arrived.length;
    this.#arrived = grown(this.#arrived, rows);
    this.#place = grown(this.#place, rows);
    this.#at = grown(this.#at, rows);
    this.#sense = grown(this.#sense, rows);
    this.#val = grown(this.#val, rows);
    this.#long = grown(this.#long, rows);
    this.#flags = grown(this.#flags, rows);
  }
}

type Column = Float64Array<ArrayBuffer> | Uint16Array<ArrayBuffer> | Uint8Array<ArrayBuffer>;

const alike = <C extends Column>(column: C, rows: number): C =>
  new (column.constructor as new (length: number) => C)(rows);

function grown<C extends Column>(column: C, rows: number): C {
  const larger = alike(column, rows);
  larger.set(column);
  return larger;
}

function inOrder<C extends Column>(column: C, order: readonly number[]): C {
  const ordered = alike(column, column.length);
  for (const [n, from] of order.entries()) ordered[n] = column[from] as number;
  return ordered;
}
